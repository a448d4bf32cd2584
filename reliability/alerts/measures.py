"""What the rules look at, by name: each measure over all sources of a tenant at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, Sum

from reliability.alerts.letters import (
    RECENT,
    Scope,
    Values,
    inflow,
    money_at_risk,
    oldest_letter,
    open_letters,
)
from reliability.alerts.machine import beat_silent, old_snapshot, oldest_ready_job, sweep_late
from reliability.models import (
    Alert,
    AlertRule,
    ProcessedKey,
    Report,
    StatementFolder,
    Stretch,
)
from reliability.models.stretch import KEYS

Measure = AlertRule.Measure
OF_LETTERS = frozenset(
    {Measure.OPEN_LETTERS, Measure.OLDEST_LETTER, Measure.MONEY, Measure.INFLOW}
)
DRAINABLE = OF_LETTERS - {Measure.INFLOW}
"""Measures that a redrive of the same letters brings down."""


def statements_to_chase(scope: Scope, _now: datetime) -> Values:
    """Count the days whose statement is absent or incomplete and that nobody signed off.

    A folder that cannot be read counts as one: its next statement will not come.
    """
    rows = Report.objects.filter(
        tenant=scope.tenant,
        current=True,
        signed_at=None,
        completeness__in=[Report.Completeness.ABSENT, Report.Completeness.INCOMPLETE],
    )
    days = Counter(dict(rows.values_list("source_id").annotate(Count("pk")).order_by()))
    unreadable = StatementFolder.objects.filter(tenant=scope.tenant).exclude(why="")
    return days + Counter(unreadable.values_list("source_id", flat=True))


def keys_without_job(scope: Scope, _now: datetime) -> Values:
    """Count the accepted events whose job is gone: more than none means something was lost."""
    newest = Stretch.objects.newest()
    live = ProcessedKey.objects.lost().filter(tenant=scope.tenant, pk__gte=(newest + 1) * KEYS)
    rows = live.values_list("source_id").annotate(Count("pk")).order_by()
    kept = Stretch.objects.broken().filter(tenant=scope.tenant, number__lte=newest)
    before = kept.values_list("source_id").annotate(Sum("missing")).order_by()
    return Counter(dict(rows)) + Counter(dict(before))


def first_lost(source: int | None) -> str:
    """Return the first accepted key of a source, or of all, that has no job; empty for none."""
    of = Q(source=source) if source else Q()
    lost, newest = (
        ProcessedKey.objects.lost().filter(of).order_by("pk"),
        Stretch.objects.newest(),
    )
    broken = Stretch.objects.broken().filter(of).order_by("number").first()
    first = (newest + 1 if broken is None else broken.number) * KEYS
    return lost.filter(pk__gte=first).values_list("key", flat=True).first() or ""


MEASURES: dict[str, Callable[[Scope, datetime], Values]] = {
    Measure.OPEN_LETTERS: open_letters,
    Measure.OLDEST_LETTER: oldest_letter,
    Measure.MONEY: money_at_risk,
    Measure.INFLOW: inflow,
    Measure.SWEEP_LATE: sweep_late,
    Measure.BEAT: beat_silent,
    Measure.READY: oldest_ready_job,
    Measure.SNAPSHOT: old_snapshot,
    Measure.STATEMENT: statements_to_chase,
    Measure.CONSERVATION: keys_without_job,
}


def facts_of(alert: Alert, now: datetime) -> dict[str, Any]:
    """Return what to remember of the moment an alert opens; for the console, not for mails."""
    match alert.rule.measure:
        case Measure.OPEN_LETTERS:
            letters = Scope.of(alert.rule).letters().filter(Q(source=alert.source_id))
            return {"last_hour": letters.filter(buried_at__gt=now - RECENT).count()}
        case Measure.CONSERVATION:
            key = first_lost(alert.source_id)
            return {"key": key} if key else {}
        case _:
            return {}
