"""How much a destination is asked at once, and when it is left alone: slots and the breaker."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, F, Q
from django.db.models.functions import Now
from django.utils import timezone

from reliability import sql
from reliability.errors import JobInterrupted
from reliability.models import Destination, Job, Source

FAILURES_MAX = 5
"""In a row: then the breaker opens."""
OPEN_MIN, OPEN_MAX = timedelta(seconds=10), timedelta(minutes=5)
KEPT_SECONDS = 0.5
SLOT_SECONDS = 15.0
LOCK_SPACE = 7_426
"""First half of our advisory locks on slots; the second is the destination and the slot."""
SLOTS = 64
DEFERRED = "deferred"
"""Worker of a job whose destination said 202 and will report when it is done."""
KIND = "forward"


@dataclass
class _Barred:
    until: float = 0.0
    sources: tuple[int, ...] = ()


_barred = _Barred()


def barred() -> list[int]:
    """Name the sources nothing is started for: breaker open, or all slots taken. Half a second old
    at most.
    """
    if _barred.until < time.monotonic():
        _barred.sources = tuple(_look())
        _barred.until = time.monotonic() + KEPT_SECONDS
    return list(_barred.sources)


def forget() -> None:
    """Look again at the next call. For tests."""
    _barred.until = 0.0


def _look() -> list[int]:
    if not Source.objects.filter(destination__isnull=False).exists():
        return []
    busy = (
        Job.objects.filter(state=Job.State.RUNNING, kind=KIND)
        .exclude(worker=DEFERRED)
        .values("source__destination")
        .annotate(running=Count("pk"))
        .filter(running__gte=F("source__destination__concurrency_max"))
    )
    full = [row["source__destination"] for row in busy]
    closed = Q(destination__open_until__gt=Now()) | Q(destination__in=full)
    return list(Source.objects.filter(closed).values_list("pk", flat=True))


@contextmanager
def slot(destination: Destination) -> Iterator[None]:
    """Hold one of the destination's slots over all workers; it frees itself when we die.

    Raises ``JobInterrupted`` (the job goes back at no cost) when none comes free in 15 s.
    """
    until = time.monotonic() + SLOT_SECONDS
    while (taken := _take(destination)) is None:
        if time.monotonic() > until:
            raise JobInterrupted(f"{destination.slug} is busy")
        time.sleep(0.05)
    try:
        yield
    finally:
        with sql.database().cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK_SPACE, taken])


def _take(destination: Destination) -> int | None:
    for number in range(destination.concurrency_max):
        key = (destination.pk * SLOTS + number) % 2**31
        with sql.database().cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK_SPACE, key])
            if cursor.fetchone() == (True,):
                return key
    return None


def pass_breaker(destination: Destination) -> None:
    """Go on if the breaker is closed, or as the one request that tries after it was open.

    Raises ``JobInterrupted`` for all others: they go back at no cost.
    """
    if destination.open_until is None:
        return
    now = timezone.now()
    mine = Destination.objects.filter(
        pk=destination.pk, open_until=destination.open_until, open_until__lte=now
    )
    if not mine.update(open_until=now + _pause(destination.failures)):
        raise JobInterrupted(f"the breaker of {destination.slug} is open")


def answered(destination: Destination, *, trouble: bool) -> None:
    """Count an answer for the breaker: trouble five times in a row opens it, success closes it."""
    rows = Destination.objects.filter(pk=destination.pk)
    if not trouble:
        rows.filter(Q(failures__gt=0) | Q(open_until__isnull=False)).update(
            failures=0, open_until=None
        )
        return
    rows.update(failures=F("failures") + 1)
    now, failures = timezone.now(), destination.failures + 1
    due = rows.filter(failures__gte=FAILURES_MAX).filter(
        Q(open_until=None) | Q(open_until__lte=now)
    )
    due.update(open_until=now + _pause(failures))


def _pause(failures: int) -> timedelta:
    """Return how long to leave it alone: 10 s, doubling to 5 min with every further failure."""
    doublings = min(max(failures - FAILURES_MAX, 0), 10)
    return min(OPEN_MIN * (1 << doublings), OPEN_MAX)
