"""The list of redrives, and the list of one redrive's letters."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import Count, Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter
from reliability.console.lists.dead_letters import headline
from reliability.console.redact import hide
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable, trace_link
from reliability.models import Redrive, RedriveMember

Outcome = RedriveMember.Outcome


class RedriveFilter(StrictFilter):
    noun = "Redrives"

    state = django_filters.ChoiceFilter(
        choices=Redrive.State.choices, label="State", empty_label="any"
    )
    by = django_filters.CharFilter(field_name="actor", label="Started by", max_length=150)
    live = django_filters.ChoiceFilter(
        choices=[("1", "not over")], label="Under way", empty_label="or over", method="by_life"
    )
    glass = django_filters.ChoiceFilter(
        choices=[("due", "review due")], label="Broken glass", empty_label="any",
        method="by_glass",
    )  # fmt: skip

    class Meta:
        model = Redrive
        fields: list[str] = []

    def by_life(self, rows: Any, _: str, __: str) -> Any:
        return rows.filter(state__in=Redrive.LIVE)

    def by_glass(self, rows: Any, _: str, __: str) -> Any:
        return rows.exclude(break_glass="").filter(reviewed_by="")


def with_letters(redrives: Any) -> Any:
    """Annotate how many letters take part, and how many of them have an outcome."""
    part = ~Q(members__outcome=Outcome.LEFT)
    open_ = Q(members__outcome__in=[Outcome.PENDING, Outcome.RUNNING])
    return redrives.annotate(
        letters=Count("members", filter=part), settled=Count("members", filter=part & ~open_)
    )


class RedriveTable(RowsTable):
    name = Lead(accessor="pk", verbose_name="Redrive")
    state = tables.Column()
    letters = tables.Column(verbose_name="Letters", attrs=NUMERIC)
    reason = tables.Column(attrs=WIDE)
    actor = tables.Column(verbose_name="By")
    cutoff_at = tables.Column(verbose_name="Frozen", attrs=NUMERIC)

    def render_name(self, record: Redrive) -> SafeString:
        address = reverse("console:redrive", args=[record.public_id])
        return format_html('<a href="{}">{}</a>', address, record)

    def render_state(self, record: Redrive) -> SafeString:
        shown = parts.badge(record.state, record.get_state_display().lower())
        if record.break_glass and not record.reviewed_by:
            return format_html("{} {}", shown, parts.badge("warn", "review due"))
        return shown

    def render_letters(self, record: Any) -> SafeString:
        small = format_html(
            '<small class="soft">{} settled</small>', parts.number(record.settled)
        )
        return format_html("{}{}", parts.number(record.letters), small)

    def render_reason(self, record: Redrive) -> SafeString:
        return format_html("{}<small>{}</small>", record.reason or "–", record.ticket)

    def render_actor(self, record: Redrive) -> SafeString:
        second = f"approved by {record.approved_by}" if record.approved_by else ""
        return format_html('{}<small class="soft">{}</small>', record.actor, second)

    def render_cutoff_at(self, record: Redrive) -> SafeString:
        return self.time(record.cutoff_at)


class RedriveLetterFilter(StrictFilter):
    noun = "Letters of the redrive"

    verdict = django_filters.ChoiceFilter(
        choices=RedriveMember.Verdict.choices, label="Verdict", empty_label="any"
    )
    outcome = django_filters.ChoiceFilter(
        choices=Outcome.choices, label="Outcome", empty_label="any"
    )

    class Meta:
        model = RedriveMember
        fields: list[str] = []


class RedriveLetterTable(RowsTable):
    letter = Lead(verbose_name="Letter")
    key = tables.Column(accessor="letter__job__key__key", verbose_name="Key", attrs=WIDE)
    verdict = tables.Column(verbose_name="Dry run")
    outcome = tables.Column()
    why = tables.Column(verbose_name="Why", attrs=WIDE, empty_values=())
    amount = tables.Column(accessor="pk", verbose_name="Amount", attrs=NUMERIC)

    def render_letter(self, record: RedriveMember) -> SafeString:
        address = reverse("console:dead_letter", args=[record.letter.public_id])
        return format_html(
            '<a href="{}" title="DL-{}">{}</a>', address, record.letter_id,
            headline(record.letter),
        )  # fmt: skip

    def render_key(self, value: str) -> SafeString:
        return trace_link(value)

    def render_verdict(self, value: str, record: RedriveMember) -> SafeString:
        return parts.badge(record.verdict, value.lower())

    def render_outcome(self, value: str, record: RedriveMember) -> SafeString:
        return parts.badge(record.outcome, value.lower())

    def render_why(self, record: RedriveMember) -> str:
        return hide(record.why) or "–"

    def render_amount(self, record: RedriveMember) -> str:
        letter = record.letter
        return parts.money(letter.amount_minor, letter.currency, letter.exponent) or "–"
