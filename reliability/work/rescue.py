"""The sweep's moves: jobs taken back from lost workers, expired, held and freed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.handlers import find, kinds
from reliability.models import Job
from reliability.policy import Bury, after_crash
from reliability.work.lease import JobId


@dataclass(frozen=True)
class _Rescued:
    id: int
    queue: str


@dataclass(frozen=True)
class Rescue:
    """What one pass did to jobs whose worker was lost. ``queues`` are to be rung after commit."""

    rescued: int
    buried: int
    queues: frozenset[str]


def lost(limit: int) -> list[Job]:
    """Lock up to ``limit`` running jobs whose lease ran out, passing over those others hold.

    Call inside a transaction. The order is the lease's end, so that none waits behind others.
    """
    return list(
        Job.objects.select_for_update(skip_locked=True)
        .filter(state=Job.State.RUNNING, lease_expires_at__lte=_database_now())
        .order_by("lease_expires_at")[:limit]
    )


def take_back(jobs: Sequence[Job]) -> Rescue:
    """Start lost jobs again, or bury those whose effect is in doubt or whose budget is spent."""
    rescued: list[_Rescued] = []
    buried = 0
    for job in jobs:
        verdict = after_crash(
            intent=job.intent_at is not None,
            # Only once() sets an intent under a kind that could be repeated: its caller's own
            # code began, not the kind's handler.
            repeatable=job.intent_at is None and _repeatable(job),
            crashes=job.crashes + 1 - job.round_crashes,
            crashes_alone=job.crashes_alone + job.alone - job.round_crashes_alone,
        )
        if isinstance(verdict, Bury):
            buried += len(_bury(job, verdict))
        else:
            rescued += sql.rows(
                "rescue_job", _Rescued, id=job.pk, token=job.token,
                worker=job.worker, started=job.started_at,
            )  # fmt: skip
    return Rescue(len(rescued), buried, frozenset(row.queue for row in rescued))


def _repeatable(job: Job) -> bool:
    kind = find(job.kind)
    return kind is not None and kind.repeatable


def _bury(job: Job, verdict: Bury) -> list[JobId]:
    return sql.rows(
        "bury_job", JobId, id=job.pk, token=job.token, expired_only=True,
        outcome=verdict.outcome, reason=verdict.reason, attempt="lost", error_type="WorkerLost",
        message="its worker was lost: the lease ran out", traceback="",
        fingerprint=f"WorkerLost: {job.kind}", worker=job.worker, started=job.started_at,
    )  # fmt: skip


def expire(limit: int) -> int:
    """Bury ready jobs whose window closed before they were started; return how many."""
    return len(sql.rows("expire_jobs", JobId, limit=limit))


def hold_and_free(limit: int) -> int:
    """Hold due jobs of kinds unknown here, free those whose kind is known now; return the freed."""
    known = [kind.name for kind in kinds()]
    late = timezone.now() - conf().start_grace
    strangers = Job.objects.ready().filter(held="", run_at__lte=late).exclude(kind__in=known)
    Job.objects.filter(pk__in=_some(strangers, limit), state=Job.State.READY, held="").update(
        held=Job.Hold.KIND_UNKNOWN
    )
    waiting = Job.objects.ready().filter(held=Job.Hold.KIND_UNKNOWN, kind__in=known)
    freed = 0
    for kind in kinds():
        ids = _some(waiting.filter(kind=kind.name), limit - freed)
        freed += Job.objects.filter(
            pk__in=ids, state=Job.State.READY, held=Job.Hold.KIND_UNKNOWN
        ).update(held="", queue=kind.queue)
    return freed


def _some(jobs: QuerySet[Job], limit: int) -> list[int]:
    return list(jobs.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])


@dataclass(frozen=True)
class _DueQueue:
    queue: str


def due_queues(*, since: timedelta = timedelta(0)) -> list[str]:
    """Name the queues in which a job has been due for longer than ``since`` without a start."""
    return [row.queue for row in sql.rows("due_queues", _DueQueue, since=since)]


@dataclass(frozen=True)
class _Now:
    now: datetime


def _database_now() -> datetime:
    """Read the database's clock: leases are its times, whatever this machine thinks."""
    return sql.rows("now", _Now)[0].now
