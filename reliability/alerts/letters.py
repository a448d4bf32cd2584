"""What the rules see of the open letters: counts, ages, money; with or without some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Abs

from reliability.models import (
    AlertRule,
    DeadLetter,
    LetterGroup,
    Redrive,
    RedriveMember,
    Silence,
    Tenant,
)

Values = Mapping[int | None, int]
"""By source id; ``None`` is the tenant as a whole. A source that is absent stands at zero."""

RECENT = timedelta(hours=1)
Outcome = RedriveMember.Outcome
DRAINED = (Outcome.PENDING, Outcome.RUNNING, Outcome.SUCCEEDED, Outcome.FAILED)
"""Members a redrive takes, or has taken: what it left alone is nobody's yet."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which letters a measure looks at; ``without`` takes some of them out."""

    tenant: Tenant
    kind: str = ""
    fingerprint: str = ""
    currency: str = ""
    without: Q | None = None

    @classmethod
    def of(cls, rule: AlertRule) -> Scope:
        """Return the scope a rule's row names, its source apart."""
        return cls(
            tenant=rule.tenant,
            kind=rule.kind,
            fingerprint=rule.fingerprint,
            currency=rule.currency,
        )

    def letters(self) -> QuerySet[DeadLetter]:
        """Return the open letters in it."""
        found = DeadLetter.objects.open().filter(tenant=self.tenant).order_by()
        if self.kind:
            found = found.filter(kind=self.kind)
        if self.fingerprint:
            found = found.filter(fingerprint=self.fingerprint)
        return found if self.without is None else found.exclude(self.without)


def open_letters(scope: Scope, _now: datetime) -> Values:
    """Count the open dead letters: the rows the letters page lists for the source."""
    return dict(scope.letters().values_list("source_id").annotate(Count("pk")))


def inflow(scope: Scope, now: datetime) -> Values:
    """Count the open letters buried within the last hour."""
    recent = scope.letters().filter(buried_at__gt=now - RECENT)
    return dict(recent.values_list("source_id").annotate(Count("pk")))


def oldest_letter(scope: Scope, now: datetime) -> Values:
    """Return the age of the oldest open letter, in seconds."""
    oldest = scope.letters().values_list("source_id").annotate(Min("buried_at"))
    return {source: seconds(now - buried_at) for source, buried_at in oldest}


def money_at_risk(scope: Scope, _now: datetime) -> Values:
    """Return what the open letters of one currency are worth, in whole major units.

    Refunds count as what they move: a charge and a refund are never netted.
    """
    rows = scope.letters().filter(currency__iexact=scope.currency, amount_minor__isnull=False)
    worth: dict[int | None, int] = {}
    of_unit = rows.values_list("source_id", "exponent").annotate(
        minor=Sum(Abs("amount_minor"))
    )
    for source, exponent, minor in of_unit:
        worth[source] = worth.get(source, 0) + int(minor) // 10 ** (exponent or 0)
    return worth


def muted(tenant: Tenant, now: datetime) -> Q | None:
    """Match the letters of causes that are muted now; ``None`` where no cause is."""
    groups = LetterGroup.objects.filter(tenant=tenant, muted_until__gt=now)
    if not groups.exists():
        return None
    of_letter = groups.filter(
        source=OuterRef("source"), kind=OuterRef("kind"), fingerprint=OuterRef("fingerprint")
    )
    return Q(Exists(of_letter))


def silenced_kinds(silences: Sequence[Silence]) -> Q | None:
    """Match the letters whose kind is silenced; ``None`` where none is."""
    found = None
    for silence in silences:
        one = Q(kind=silence.kind)
        if silence.source_id:
            one &= Q(source=silence.source_id)
        found = one if found is None else found | one
    return found


def drained(tenant: Tenant) -> Q | None:
    """Match the letters that a running redrive takes or took; ``None`` where none runs."""
    running = list(
        Redrive.objects.draining().filter(tenant=tenant).values_list("pk", flat=True)
    )
    if not running:
        return None
    members = RedriveMember.objects.filter(
        redrive__in=running, job_id=OuterRef("job_id"), outcome__in=DRAINED
    )
    return Q(Exists(members))


def seconds(age: timedelta) -> int:
    """Return whole seconds, never below zero."""
    return max(0, int(age.total_seconds()))
