"""The list of dead letters: what it may be asked for, and how a row looks."""

from datetime import timedelta
from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import HiddenInput
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter, sources_of
from reliability.console.handling import attempts_told
from reliability.console.redact import hide
from reliability.console.tables import NUMERIC, WIDE, Lead, Pick, RowsTable, trace_link
from reliability.models import Attempt, DeadLetter

ALL = "all"
AGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
AGE_WORDS = [("1h", "over an hour"), ("24h", "over a day"), ("7d", "over a week")]


class DeadLetterFilter(StrictFilter):
    noun = "Dead letters"
    initial = {"status": DeadLetter.Status.OPEN}

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    kind = django_filters.CharFilter(label="Kind", max_length=255)
    outcome = django_filters.ChoiceFilter(
        choices=DeadLetter.Outcome.choices, label="Outcome", empty_label="any"
    )
    error = django_filters.CharFilter(
        field_name="error_type", label="Error class", max_length=255
    )
    status = django_filters.ChoiceFilter(
        choices=[*DeadLetter.Status.choices, (ALL, "All")],
        label="Status", method="by_status", empty_label=None,
    )  # fmt: skip
    age = django_filters.ChoiceFilter(
        choices=AGE_WORDS, label="Age", method="by_age", empty_label="any"
    )
    rounds = django_filters.NumberFilter(
        field_name="round", lookup_expr="gte", label="Rounds, at least",
        min_value=1, max_value=10_000, decimal_places=0,
    )  # fmt: skip
    key = django_filters.CharFilter(
        field_name="job__key__key", lookup_expr="contains", label="Key contains", max_length=255,
        strip=False,
    )  # fmt: skip
    cause = django_filters.CharFilter(
        field_name="fingerprint", label="Cause", max_length=255, widget=HiddenInput
    )

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def by_status(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return rows if value == ALL else rows.filter(status=value)

    def by_age(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return rows.filter(buried_at__lte=self.request.now - AGES[value])


def with_attempts(letters: "QuerySet[DeadLetter]") -> "QuerySet[Any]":
    """Annotate how many starts of the letter's own round failed, and how many were lost."""
    return letters.annotate(
        failed=_ended(Attempt.Outcome.FAILED), lost=_ended(Attempt.Outcome.LOST)
    )


def _ended(outcome: str) -> Coalesce:
    ended = Attempt.objects.filter(
        job=OuterRef("job"), round=OuterRef("round"), outcome=outcome
    )
    counted = ended.order_by().values("job").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


class DeadLetterTable(RowsTable):
    pick = Pick(accessor="public_id", verbose_name="")
    reason = Lead()
    kind = tables.Column(attrs=WIDE)
    key = tables.Column(accessor="job__key__key", verbose_name="Key", attrs=WIDE)
    outcome = tables.Column()
    attempts = tables.Column(accessor="round", verbose_name="Attempts", attrs=NUMERIC)
    amount = tables.Column(accessor="pk", verbose_name="Amount", attrs=NUMERIC)
    buried_at = tables.Column(verbose_name="Age", attrs=NUMERIC)

    def render_pick(self, record: DeadLetter) -> SafeString:
        if record.status != DeadLetter.Status.OPEN:
            return format_html("{}", "")
        return format_html(
            '<input type="checkbox" form="bulk" name="letter" value="{}:{}" '
            'aria-label="Select DL-{}">',
            record.public_id, record.job.version, record.pk,
        )  # fmt: skip

    def render_reason(self, record: DeadLetter) -> SafeString:
        link = format_html(
            '<a href="{}" title="DL-{}">{}</a>',
            reverse("console:dead_letter", args=[record.public_id]), record.pk,
            headline(record),
        )  # fmt: skip
        return format_html("{} {}", link, came_back(record)) if record.round > 1 else link

    def render_kind(self, record: DeadLetter) -> SafeString:
        return format_html("{}<small>{}</small>", record.kind or "not readable", record.source)

    def render_key(self, value: str) -> SafeString:
        return trace_link(value)

    def render_outcome(self, record: DeadLetter) -> SafeString:
        badge = parts.badge(record.outcome)
        if record.status == DeadLetter.Status.OPEN:
            return badge
        return format_html("{} {}", badge, parts.badge(record.status))

    def render_attempts(self, record: Any) -> SafeString:
        told = attempts_told(
            record.failed, record.lost, kind=record.kind, own_job=record.source.internal
        )
        first, _, lost = told.partition(", ")
        small = format_html('<small class="soft"><span class="vh">, </span>{}</small>', lost)
        return format_html("{}{}", first, small if lost else "")

    def render_amount(self, record: DeadLetter) -> str:
        return parts.money(record.amount_minor, record.currency, record.exponent) or "–"

    def render_buried_at(self, record: DeadLetter) -> SafeString:
        words = parts.span(self.now - record.buried_at)
        return parts.when(record.buried_at, words, record.source.zone)


def headline(letter: DeadLetter) -> str:
    """Return why it died in one line: the error where there was one, else the reason."""
    error = ": ".join(filter(None, (letter.error_type, letter.message)))
    return hide(error or letter.reason)[:160] or letter.outcome


def came_back(letter: DeadLetter) -> SafeString:
    """Say how often this job became a letter before."""
    times = letter.round - 1
    return parts.badge("cameback", "came back once" if times == 1 else f"came back ×{times}")
