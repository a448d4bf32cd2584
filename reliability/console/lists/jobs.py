"""The list of jobs: any state, newest first."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter, destinations_of, sources_of
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable, trace_link
from reliability.models import Job

ANY = "any"
DUE_WORDS = [("now", "may start now"), ("later", "later")]


class JobFilter(StrictFilter):
    noun = "Jobs"
    further = frozenset({"due"})

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    state = django_filters.ChoiceFilter(
        choices=Job.State.choices, label="State", empty_label="any"
    )
    kind = django_filters.CharFilter(label="Kind", max_length=255)
    queue = django_filters.CharFilter(label="Queue", max_length=255)
    held = django_filters.ChoiceFilter(
        choices=[(ANY, "For any reason"), *(c for c in Job.Hold.choices if c[0])],
        label="Held", empty_label="or not", method="by_hold",
    )  # fmt: skip
    due = django_filters.ChoiceFilter(
        choices=DUE_WORDS, label="Ready, due", empty_label="or not", method="by_due"
    )
    created_after = django_filters.IsoDateTimeFilter(
        field_name="created_at", lookup_expr="gte", label="Accepted since"
    )
    destination = django_filters.ModelChoiceFilter(
        field_name="source__destination", queryset=destinations_of, to_field_name="slug",
        label="Destination", empty_label="any",
    )  # fmt: skip
    ended_after = django_filters.IsoDateTimeFilter(
        field_name="ended_at", lookup_expr="gte", label="Ended since"
    )

    class Meta:
        model = Job
        fields: list[str] = []

    def by_hold(self, rows: "QuerySet[Job]", _: str, value: str) -> Any:
        # Only what is ready is held: said, for the index of the few that are.
        held = rows.filter(state=Job.State.READY).exclude(held="")
        return held if value == ANY else held.filter(held=value)

    def by_due(self, rows: "QuerySet[Job]", _: str, value: str) -> Any:
        now = Q(run_at__lte=self.request.now)
        return rows.filter(now if value == "now" else ~now, state=Job.State.READY, held="")


class JobTable(RowsTable):
    kind = Lead()
    key = tables.Column(accessor="key__key", verbose_name="Key", attrs=WIDE)
    source = tables.Column()
    state = tables.Column()
    starts = tables.Column(attrs=NUMERIC)
    run_at = tables.Column(verbose_name="Runs", attrs=NUMERIC)
    created_at = tables.Column(verbose_name="Accepted", attrs=NUMERIC)

    def render_kind(self, record: Job) -> SafeString:
        return trace_link(str(record.public_id), record.kind, plain=True)

    def render_key(self, value: str) -> SafeString:
        return trace_link(value)

    def render_state(self, record: Job) -> SafeString:
        if record.held:
            return parts.badge("held", f"held: {record.get_held_display()}")
        return parts.badge(record.state, record.get_state_display().lower())

    def render_run_at(self, record: Job) -> Any:
        if record.state != Job.State.READY:
            return "–"
        return self.time(record.run_at, record.source.zone)

    def render_created_at(self, record: Job) -> SafeString:
        return self.time(record.created_at, record.source.zone)
