"""One pass over everything that should have moved and did not. Never runs work itself."""

import logging
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from reliability import dispatch, sql
from reliability.conf import conf
from reliability.killing import Point, reach
from reliability.models import Run
from reliability.work.holds import free_unpaused
from reliability.work.rescue import due_queues, expire, hold_and_free, lost, take_back

logger = logging.getLogger(__name__)

JOB = "sweep"


@dataclass(frozen=True)
class Swept:
    """What one pass did; ``left`` says that a rule met its batch limit and more may wait."""

    rescued: int = 0
    buried: int = 0
    expired: int = 0
    freed: int = 0
    rung: int = 0
    left: bool = False


def sweep(trigger: str) -> Swept:
    """Make one pass and record it as a ``Run``; two at once are harmless.

    Each rule is one transaction of at most ``conf().sweep_batch_max`` rows that passes over what
    others hold: (a) expired leases, (b) windows that closed unstarted, (c) kinds unknown or known
    again, paused or no longer, (d) queues whose bell was lost.
    """
    started_at = timezone.now()
    try:
        swept = _pass()
    except Exception:
        _record(trigger, started_at, Swept(), ok=False)
        raise
    _record(trigger, started_at, swept, ok=True)
    logger.info("swept", extra=asdict(swept))
    return swept


def _pass() -> Swept:
    limit, alias = conf().sweep_batch_max, sql.database().alias
    with transaction.atomic(using=alias):
        jobs = lost(limit)
        rescue = take_back(jobs)
    if rescue.queues:
        reach(Point.RESCUED)
    with transaction.atomic(using=alias):
        expired = expire(limit)
    with transaction.atomic(using=alias):
        freed = hold_and_free(limit)
    freed += free_unpaused(limit)
    queues = rescue.queues | set(due_queues(since=conf().start_grace))
    for queue in queues:
        dispatch.ring(queue)
    return Swept(
        rescued=rescue.rescued,
        buried=rescue.buried,
        expired=expired,
        freed=freed,
        rung=len(queues),
        left=len(jobs) == limit or expired == limit or freed >= limit,
    )


def _record(trigger: str, started_at: datetime, swept: Swept, *, ok: bool) -> None:
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(), ok=ok,
        facts=asdict(swept),
    )  # fmt: skip


def last_good() -> datetime | None:
    """Return when the last good pass ended, or ``None`` where there was none yet."""
    return (
        Run.objects.filter(job=JOB, ok=True)
        .order_by("-ended_at")
        .values_list("ended_at", flat=True)
        .first()
    )
