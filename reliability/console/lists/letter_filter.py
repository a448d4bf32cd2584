"""What the list of dead letters may be asked for."""

import re
from datetime import timedelta
from typing import Any

import django_filters
from django.db.models import F, Q, QuerySet
from django.forms import HiddenInput, TextInput

from reliability.console.filters import NotUnderstood, StrictFilter, sources_of
from reliability.console.searching import (
    NO_LETTER,
    TEXT_MIN,
    PayloadsFound,
    find_payloads,
    mentioning,
    read_payload,
)
from reliability.models import DeadLetter, ProcessedKey

ALL = "all"
AGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
AGE_WORDS = [("1h", "over an hour"), ("24h", "over a day"), ("7d", "over a week")]

BIGINT_MAX = 2**63 - 1
PROBE = re.compile(r"@|\d{5}")
"""Pieces of addresses and of card or account numbers: errors hold them, viewers do not see them."""
TIME = "2026-11-30T08:00Z"


def such_as(example: str) -> TextInput:
    """Return a text field that shows what may be written into it."""
    return TextInput(attrs={"placeholder": example})


class Minor(django_filters.NumberFilter):
    """An amount in minor units, as the database keeps it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            min_value=-BIGINT_MAX, max_value=BIGINT_MAX, decimal_places=0, **options
        )


class DeadLetterFilter(StrictFilter):
    noun = "Dead letters"
    initial = {"status": DeadLetter.Status.OPEN}
    wide = {"status": frozenset({DeadLetter.Status.OPEN, ALL})}
    further = frozenset(
        {"error", "rounds", "key", "key_starts", "downstream", "amount", "amount_min", "amount_max", "currency",
         "died_since", "died_before", "payload"}
    )  # fmt: skip
    payloads: PayloadsFound | None = None
    """What the search of payloads read, once it has run."""

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
    text = django_filters.CharFilter(
        label="Error text", method="by_text", min_length=TEXT_MIN, max_length=255
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
        field_name="job__key__key", label="Key", max_length=255, strip=False
    )
    key_starts = django_filters.CharFilter(
        field_name="job__key__key", lookup_expr="startswith", label="Key starts with",
        max_length=255, strip=False,
    )  # fmt: skip
    downstream = django_filters.CharFilter(
        label="Downstream key", max_length=255, strip=False, method="by_downstream"
    )
    amount = Minor(field_name="amount_minor", label="Amount, minor units")
    amount_min = Minor(field_name="amount_minor", lookup_expr="gte", label="Amount from")
    amount_max = Minor(field_name="amount_minor", lookup_expr="lte", label="Amount up to")
    currency = django_filters.CharFilter(
        label="Currency", method="by_currency", min_length=3, max_length=3
    )
    died_since = django_filters.IsoDateTimeFilter(
        field_name="buried_at", lookup_expr="gte", label="Died since", widget=such_as(TIME)
    )
    died_before = django_filters.IsoDateTimeFilter(
        field_name="buried_at", lookup_expr="lt", label="Died before", widget=such_as(TIME)
    )
    cause = django_filters.CharFilter(
        field_name="fingerprint", label="Cause", max_length=255, widget=HiddenInput
    )
    # The last: it reads the payloads of what the others leave.
    payload = django_filters.CharFilter(
        label="Payload, path=value",
        method="by_payload",
        max_length=255,
        widget=such_as("data.object.amount=4200"),
    )

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def refused(self, asked: dict[str, Any]) -> str:
        """Refuse what cannot be searched within limits, or compares what has no order."""
        least, most = asked["amount_min"], asked["amount_max"]
        amounts = [asked["amount"], least, most]
        searched = [name for name in ("text", "payload") if asked[name]]
        if any(amount is not None for amount in amounts) and not asked["currency"]:
            return "An amount needs its currency: add “currency=EUR”."
        if least is not None and most is not None and least > most:
            return "“amount_min” is more than “amount_max”."
        if searched and asked["status"] != DeadLetter.Status.OPEN:
            return f"“{searched[0]}” searches open letters only: take “status” away."
        return self._private(asked) or _unreadable(asked["payload"])

    def _private(self, asked: dict[str, Any]) -> str:
        """A search must not answer what a viewer's page keeps back."""
        member = getattr(self.request, "member", None)
        if member is None or "view_payload" in member.may:
            return ""
        payload = read_payload(asked["payload"])
        if PROBE.search(asked["text"]) or (payload and payload.private):
            return "Your role sees this redacted, so it cannot search for it."
        return ""

    def by_status(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return rows if value == ALL else rows.filter(status=value)

    def by_age(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return rows.filter(buried_at__lte=self.request.now - AGES[value])

    def by_text(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return mentioning(rows, value)

    def by_currency(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        return rows.filter(currency__in={value.upper(), value.lower()})

    def by_downstream(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        same = Q(downstream_key=F("key"))
        known = ProcessedKey.objects.filter(tenant=self.request.tenant)
        return rows.filter(
            job__key__in=known.filter(
                (Q(downstream_key=value) & ~same) | (Q(key=value) & same)
            ).values("pk")
        )

    def by_payload(self, rows: "QuerySet[DeadLetter]", _: str, value: str) -> Any:
        asked = read_payload(value)
        if asked is None:
            raise NotUnderstood(_unreadable(value))
        self.payloads = find_payloads(rows, asked)
        return rows.filter(pk__in=self.payloads.letter_ids or [NO_LETTER])


def _unreadable(payload: str) -> str:
    if payload and read_payload(payload) is None:
        return "“payload” is read as path=value, such as data.object.amount=4200."
    return ""
