"""Recorded runs of the sweep, the alerts, the planner and the prune."""

import django_filters
import django_tables2 as tables
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable
from reliability.models import Run

JOBS = [
    (job, job)
    for job in (
        "sweep",
        "alerts",
        "reconcile",
        "collect",
        "undelivered",
        "prune",
        "prove",
        "heartbeat",
    )
]


class RunFilter(StrictFilter):
    noun = "Runs"

    job = django_filters.ChoiceFilter(choices=JOBS, label="Run", empty_label="any")
    trigger = django_filters.ChoiceFilter(
        choices=Run.Trigger.choices, label="Trigger", empty_label="any"
    )
    ok = django_filters.ChoiceFilter(
        choices=[("True", "good"), ("False", "failed")], label="Result", empty_label="either"
    )
    since = django_filters.IsoDateTimeFilter(
        field_name="started_at", lookup_expr="gte", label="Since"
    )

    class Meta:
        model = Run
        fields: list[str] = []


class RunTable(RowsTable):
    job = Lead(verbose_name="Run")
    ok = tables.Column(verbose_name="Result")
    trigger = tables.Column()
    facts = tables.Column(verbose_name="Did", attrs=WIDE)
    lasted = tables.Column(accessor="ended_at", verbose_name="Took", attrs=NUMERIC)
    started_at = tables.Column(verbose_name="Started", attrs=NUMERIC)

    def render_ok(self, value: bool) -> SafeString:  # noqa: FBT001 - the library's call
        return parts.badge("good", "good") if value else parts.badge("failed")

    def render_facts(self, record: Run) -> str:
        did = [f"{n} {what}" for what, n in record.facts.items() if n and isinstance(n, int)]
        return ", ".join(did) or "nothing to do"

    def render_lasted(self, record: Run) -> str:
        return parts.span(record.ended_at - record.started_at)

    def render_started_at(self, record: Run) -> SafeString:
        return self.time(record.started_at)
