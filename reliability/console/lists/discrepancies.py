"""The inbox of discrepancies: what it may be asked for, and how a row looks."""

from datetime import date
from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import QuerySet
from django.forms import HiddenInput
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.compared import CAUSES, WORDS, ours_of, why
from reliability.console.filters import StrictFilter, sources_of
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable, trace_link
from reliability.models import Discrepancy

UNSETTLED = "unsettled"
ALL = "all"


class DiscrepancyFilter(StrictFilter):
    noun = "Discrepancies"
    initial = {"status": UNSETTLED}
    wide = {"status": frozenset({UNSETTLED, ALL})}
    further = frozenset({"last_since", "last_until"})

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    family = django_filters.ChoiceFilter(
        choices=Discrepancy.Family.choices, label="Kind of difference", empty_label="any"
    )
    cause = django_filters.ChoiceFilter(
        choices=[(name, words) for name, words in CAUSES.items() if name],
        label="Cause", empty_label="any",
    )  # fmt: skip
    status = django_filters.ChoiceFilter(
        choices=[(UNSETTLED, "Open or recovering"), *Discrepancy.Status.choices, (ALL, "All")],
        label="Status", method="by_status", empty_label=None,
    )  # fmt: skip
    reference = django_filters.CharFilter(label="Reference", max_length=255, strip=False)
    day = django_filters.DateFilter(label="On day", method="on_day")
    last_since = django_filters.DateFilter(
        field_name="last_day", lookup_expr="gte", label="Last seen since"
    )
    last_until = django_filters.DateFilter(
        field_name="last_day", lookup_expr="lte", label="Last seen until"
    )
    rule = django_filters.UUIDFilter(
        field_name="rule__public_id", label="Ignored by rule", widget=HiddenInput
    )

    class Meta:
        model = Discrepancy
        fields: list[str] = []

    def by_status(self, rows: "QuerySet[Discrepancy]", _: str, value: str) -> Any:
        if value == UNSETTLED:
            return rows.filter(
                status__in=[Discrepancy.Status.OPEN, Discrepancy.Status.RECOVERING]
            )
        return rows if value == ALL else rows.filter(status=value)

    def on_day(self, rows: "QuerySet[Discrepancy]", _: str, value: date) -> Any:
        return rows.filter(first_day__lte=value, last_day__gte=value)


class DiscrepancyTable(RowsTable):
    verdict = Lead()
    cause = tables.Column(attrs=WIDE, empty_values=())
    reference = tables.Column(verbose_name="Operation", attrs=WIDE)
    source = tables.Column(accessor="source__slug")
    their_minor = tables.Column(verbose_name="Theirs", attrs=NUMERIC, empty_values=())
    our_minor = tables.Column(verbose_name="Ours", attrs=NUMERIC, empty_values=())
    first_day = tables.Column(verbose_name="Since", attrs=NUMERIC)
    status = tables.Column()

    def render_verdict(self, record: Discrepancy) -> SafeString:
        href = reverse("console:discrepancy", args=[record.public_id])
        words = WORDS[record.verdict].lower()
        return format_html(
            '<a href="{}">{}</a><small class="soft">D-{}</small>',
            href,
            parts.badge(record.family, words),
            record.pk,
        )

    def render_cause(self, record: Discrepancy) -> str:
        return why(record)

    def render_reference(self, record: Discrepancy) -> SafeString:
        return trace_link(record.reference)

    def render_their_minor(self, record: Discrepancy) -> str:
        return parts.money(record.their_minor, record.currency, record.exponent) or "–"

    def render_our_minor(self, record: Discrepancy) -> str:
        return ours_of(record)

    def render_first_day(self, value: date) -> str:
        return f"{value.day} {value:%b}"

    def render_status(self, record: Discrepancy) -> SafeString:
        return parts.badge(record.status)
