"""What the rules look at: each measure in one statement over all sources of a tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q

from reliability.models import (
    Alert,
    AlertRule,
    DeadLetter,
    ProcessedKey,
    Report,
    Run,
    Tenant,
)

Values = Mapping[int | None, int]
"""By source id; ``None`` is the tenant as a whole. A source that is absent stands at zero."""

Measure = AlertRule.Measure
RECENT = timedelta(hours=1)


def open_letters(tenant: Tenant, _now: datetime) -> Values:
    """Count the open dead letters: the rows the letters page lists for the source."""
    rows = DeadLetter.objects.open().filter(tenant=tenant).values_list("source_id")
    return dict(rows.annotate(Count("pk")).order_by())


def oldest_letter(tenant: Tenant, now: datetime) -> Values:
    """Return the age of the oldest open letter, in seconds."""
    rows = DeadLetter.objects.open().filter(tenant=tenant).values_list("source_id")
    oldest = rows.annotate(Min("buried_at")).order_by()
    return {source: _seconds(now - buried_at) for source, buried_at in oldest}


def sweep_late(tenant: Tenant, now: datetime) -> Values:
    """Return the seconds since the last good sweep; none yet counts from the tenant's start."""
    last = Run.objects.filter(job="sweep", ok=True).order_by("-ended_at").first()
    return {None: _seconds(now - (last.ended_at if last else tenant.created_at))}


def statements_to_chase(tenant: Tenant, _now: datetime) -> Values:
    """Count the days whose statement is absent or incomplete and that nobody signed off."""
    rows = Report.objects.filter(
        tenant=tenant,
        current=True,
        signed_at=None,
        completeness__in=[Report.Completeness.ABSENT, Report.Completeness.INCOMPLETE],
    )
    return dict(rows.values_list("source_id").annotate(Count("pk")).order_by())


def keys_without_job(tenant: Tenant, _now: datetime) -> Values:
    """Count the accepted events whose job is gone: more than none means something was lost."""
    rows = ProcessedKey.objects.lost().filter(tenant=tenant).values_list("source_id")
    return dict(rows.annotate(Count("pk")).order_by())


MEASURES: dict[str, Callable[[Tenant, datetime], Values]] = {
    Measure.OPEN_LETTERS: open_letters,
    Measure.OLDEST_LETTER: oldest_letter,
    Measure.SWEEP_LATE: sweep_late,
    Measure.STATEMENT: statements_to_chase,
    Measure.CONSERVATION: keys_without_job,
}


def facts_of(alert: Alert, now: datetime) -> dict[str, Any]:
    """Return what to remember of the moment an alert opens; for the console, not for mails."""
    match alert.rule.measure:
        case Measure.OPEN_LETTERS:
            letters = DeadLetter.objects.open().filter(Q(source=alert.source_id))
            return {"last_hour": letters.filter(buried_at__gt=now - RECENT).count()}
        case Measure.CONSERVATION:
            first = (
                ProcessedKey.objects.lost()
                .filter(Q(source=alert.source_id))
                .order_by("pk")
                .first()
            )
            return {"key": first.key} if first else {}
        case _:
            return {}


def _seconds(age: timedelta) -> int:
    return max(0, int(age.total_seconds()))
