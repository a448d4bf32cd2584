"""Scheduled work: each period of each subject is one job, whoever's clock fires how often."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from reliability.claim.enqueue import Accepted, enqueue_many, internal_source
from reliability.claim.identity import Every, labels_between, period_key_of
from reliability.conf import conf
from reliability.models import ProcessedKey, Run

logger = logging.getLogger(__name__)

JOB = "schedule"
LONGEST = {
    Every.MONTH: timedelta(days=31),
    Every.WEEK: timedelta(days=7),
    Every.DAY: timedelta(days=1),
    Every.HOUR: timedelta(hours=1),
}
BATCH = 1_000


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Whom or what a period's work is done for; its periods begin on the clocks of ``zone``."""

    tenant: str
    name: str
    zone: str = "UTC"
    since: datetime | None = None
    """When it became due at all, if later than the schedule: a customer who joined in March."""
    payload: Any = None


Subjects = Callable[[], Iterable[Subject]]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    kind: str
    every: Every
    subjects: Subjects
    since: datetime


_schedules: dict[str, Schedule] = {}


def schedule(kind: str, *, every: Every, subjects: Subjects, since: datetime) -> None:
    """Have one job of ``kind`` for every subject and period, from the one around ``since`` on.

    The job is enqueued when its period begins, under ``period_key``; its payload holds
    ``subject``, ``period`` and the subject's own ``payload``. Periods that were missed are caught
    up with, at most ``conf().schedule_periods_max`` back. Raises ``ValueError`` for a kind that
    has a schedule already and for a ``since`` without a zone.
    """
    if kind in _schedules:
        raise ValueError(f"{kind!r} has a schedule already.")
    if since.tzinfo is None:
        raise ValueError("schedule: since must name its zone.")
    _schedules[kind] = Schedule(kind=kind, every=every, subjects=subjects, since=since)


def unschedule(kind: str) -> None:
    """Forget a schedule. For tests and for hosts that reload their handlers."""
    _schedules.pop(kind, None)


@dataclass(frozen=True)
class Scheduled:
    """What one pass did; ``failed`` names the kinds whose subjects could not be read."""

    enqueued: int
    failed: list[str]


def run_schedules(trigger: str) -> Scheduled:
    """Enqueue every period that has begun and has no key yet; record the pass.

    Two passes at once are harmless: the key decides. A schedule that fails costs the others
    nothing.
    """
    started_at = timezone.now()
    enqueued, failed = 0, []
    for each in list(_schedules.values()):
        try:
            enqueued += _catch_up(each, started_at)
        except Exception:
            logger.exception("schedule_failed", extra={"kind": each.kind})
            failed.append(each.kind)
    done = Scheduled(enqueued, failed)
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(),
        ok=not failed, facts=asdict(done),
    )  # fmt: skip
    return done


def _catch_up(due: Schedule, now: datetime) -> int:
    enqueued = 0
    for tenant, owed in _by_tenant(due.subjects()).items():
        periods = list(_periods(due, owed, now))
        for start in range(0, len(periods), BATCH):
            some = dict(periods[start : start + BATCH])
            enqueued += _enqueue_missing(due.kind, tenant, some)
    return enqueued


def _by_tenant(subjects: Iterable[Subject]) -> dict[str, list[Subject]]:
    sorted_out: dict[str, list[Subject]] = {}
    for subject in subjects:
        sorted_out.setdefault(subject.tenant, []).append(subject)
    return sorted_out


def _periods(
    due: Schedule, subjects: Iterable[Subject], now: datetime
) -> Iterator[tuple[str, Any]]:
    """Yield key and payload of each period that has begun, missed ones first."""
    back = conf().schedule_periods_max
    earliest = now - back * LONGEST[due.every]
    known: dict[tuple[str, datetime], list[str]] = {}
    for subject in subjects:
        since = max(due.since, subject.since or due.since, earliest)
        if since > now:
            continue
        if (subject.zone, since) not in known:
            known[subject.zone, since] = labels_between(
                due.every, since, now, zone=subject.zone
            )[-back:]
        for label in known[subject.zone, since]:
            told = {"subject": subject.name, "period": label, "payload": subject.payload}
            yield period_key_of(subject.name, label), told


def _enqueue_missing(kind: str, tenant: str, wanted: dict[str, Any]) -> int:
    """Enqueue what has no key; looking first keeps a pass from counting duplicates every time."""
    there = ProcessedKey.objects.filter(
        source_id=internal_source(tenant, kind).pk, key__in=list(wanted)
    )
    missing = wanted.keys() - set(there.values_list("key", flat=True))
    taken = enqueue_many(
        kind,
        [(key, told) for key, told in wanted.items() if key in missing],
        tenant=tenant,
    )
    return sum(isinstance(answer, Accepted) for answer in taken)
