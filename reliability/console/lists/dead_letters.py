"""The list of dead letters: how a row looks."""

from typing import Any

import django_tables2 as tables
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.handling import attempts_told
from reliability.console.redact import hide
from reliability.console.tables import NUMERIC, WIDE, Lead, Pick, RowsTable, trace_link
from reliability.models import Attempt, DeadLetter


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
