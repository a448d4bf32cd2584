"""The safe default mode: many local jobs in one transaction, each in a savepoint of its own."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models.functions import Now

from reliability import sql
from reliability.conf import conf
from reliability.errors import LeakedTransaction, LeaseLost, PermanentError
from reliability.handlers import Event, Kind, find
from reliability.killing import Point, reach
from reliability.models import Job
from reliability.work import attempt as attempts
from reliability.work.attempt import attempt
from reliability.work.holds import pauses
from reliability.work.lease import Leased, events
from reliability.work.nesting import close_leaked
from reliability.work.settle import Done, Failed, fail, finish, release

logger = logging.getLogger(__name__)

CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"
"""Without it one bad foreign key would fail the whole batch at its COMMIT."""
MARK = "SAVEPOINT job"
NEXT_MARK = f"RELEASE {MARK}; {MARK}"
BACK_TO_MARK = f"ROLLBACK TO {MARK}"


ERASED = "its body was erased or has had its time: there is nothing left to work on"


@dataclass(frozen=True)
class Ready:
    """A leased job with everything a start of it needs."""

    job: Leased
    kind: Kind
    event: Event
    own_job: bool


@dataclass
class _Batch:
    done: list[Done] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


def prepare(leased: Sequence[Leased]) -> list[Ready]:
    """Pair leased jobs with their handlers; what has none here, or is paused, is held."""
    loaded, paused = events(leased), pauses()
    ready = []
    for job in leased:
        kind = find(job.kind)
        if kind is None or job.id not in loaded:
            _hold(job, Job.Hold.KIND_UNKNOWN)
            continue
        read = loaded[job.id]
        if read.erased:
            fail(Failed(job, kind, PermanentError(ERASED), job.started_at))
        elif read.unconfirmed:
            _hold(job, Job.Hold.UNCONFIRMED)
        elif paused.hold(job):
            _hold(job, Job.Hold.PAUSED)
        else:
            ready.append(Ready(job, kind, read.event, read.own_job))
    return ready


def _hold(job: Leased, why: Job.Hold) -> None:
    """Put a job aside that may not run here.

    The sweep frees it once its kind is known or no longer paused, the next drain once its provider
    confirmed it.
    """
    with transaction.atomic(using=sql.database().alias):
        if release(job):
            Job.objects.filter(pk=job.id, token=job.token, state=Job.State.READY).update(
                held=why
            )
    logger.warning("job_held", extra={"job": job.id, "kind": job.kind, "why": why.value})


def run_batch(ready: Sequence[Ready]) -> None:
    """Work local jobs: handlers' rows and the DONE marks commit together, in slices of 250 ms.

    A failure costs its own job a savepoint. Should the common COMMIT fail, or the lease of one be
    lost, everything is rolled back and the unfinished are run one by one.
    """
    left = list(ready)
    while left and not attempts.stopping():
        worked = _slice(left)
        left = left[worked:]
    for waiting in left:
        release(waiting.job)


def _slice(ready: Sequence[Ready]) -> int:
    """Run as many as fit into one slice, commit, and return how many that were."""
    batch, count = _Batch(), 0
    try:
        with transaction.atomic(using=sql.database().alias, durable=True):
            until = time.monotonic() + conf().batch_time.total_seconds()
            sql.command(MARK)
            for waiting in ready:
                _in_savepoint(waiting, batch)
                count += 1
                reach(Point.AMID_BATCH)
                if time.monotonic() > until or attempts.stopping():
                    break
            _settle(batch)
    except (DatabaseError, LeaseLost) as error:
        logger.warning("batch_rerun", extra={"jobs": count, "why": type(error).__name__})
        batch, count = _Batch(), max(count, 1)
        for waiting in _unfinished(ready[:count]):
            run_one(waiting)
    _tell(batch)
    return count


def _in_savepoint(waiting: Ready, batch: _Batch) -> None:
    """Run one handler between two marks; a failure takes back its rows and its commit hooks."""
    if not has_time(waiting):
        release(waiting.job)
        return
    connection = sql.database()
    hooks = len(connection.run_on_commit)
    verdict = _attempted(waiting, f"{CHECK_NOW}; {NEXT_MARK}")
    match verdict:
        case Done():
            batch.done.append(verdict)
        case Failed():
            del connection.run_on_commit[hooks:]
            transaction.set_rollback(False, using=connection.alias)
            sql.command(BACK_TO_MARK)
            batch.failed.append(verdict)


def _attempted(waiting: Ready, commands: str) -> Done | Failed:
    """Run the handler, close what it left open, and let the database check what it deferred."""
    depth = len(sql.database().savepoint_ids)
    verdict = attempt(waiting.job, waiting.kind, waiting.event, own_job=waiting.own_job)
    leaked = close_leaked(depth)
    if isinstance(verdict, Failed):
        return verdict
    if leaked:
        return _failed(
            waiting, verdict, LeakedTransaction("a transaction was left open or undone")
        )
    try:
        sql.command(commands)
    except DatabaseError as error:
        return _failed(waiting, verdict, error)
    return verdict


def _failed(waiting: Ready, done: Done, error: Exception) -> Failed:
    return Failed(waiting.job, waiting.kind, error, done.started_at, own_job=waiting.own_job)


class Undone(Exception):
    """Rolls back what a failed handler wrote; ``verdict`` is what to write instead."""

    def __init__(self, verdict: Failed) -> None:
        super().__init__(verdict)
        self.verdict = verdict


def _work(waiting: Ready) -> Done:
    """Run the handler in the open transaction and check its constraints; else raise ``Undone``."""
    verdict = _attempted(waiting, CHECK_NOW)
    if isinstance(verdict, Failed):
        raise Undone(verdict)
    return verdict


def _settle(batch: _Batch) -> None:
    _finish_all(batch.done)
    for failed in batch.failed:
        fail(failed)


def _finish_all(done: Sequence[Done]) -> None:
    """Finish all or raise ``LeaseLost``, which rolls back the rows of the one taken over."""
    if done and len(finish(done)) != len(done):
        raise LeaseLost("a job was taken over while it was worked")
    if done:
        reach(Point.UNCOMMITTED)


def _tell(batch: _Batch) -> None:
    if batch.done:
        reach(Point.COMMITTED)
        logger.info("jobs_done", extra={"jobs": len(batch.done)})
    for failed in batch.failed:
        logger.info(
            "job_failed",
            extra={"job": failed.job.id, "kind": failed.kind.name,
                   "error": type(failed.error).__name__},
        )  # fmt: skip


def _unfinished(ready: Sequence[Ready]) -> list[Ready]:
    """Re-read by token which jobs are still ours: a COMMIT that failed may have happened."""
    sql.database().close_if_unusable_or_obsolete()
    tokens = {waiting.job.token: waiting for waiting in ready}
    running = Job.objects.filter(
        pk__in=[waiting.job.id for waiting in ready],
        token__in=tokens,
        state=Job.State.RUNNING,
        lease_expires_at__gt=Now(),
    )
    return [tokens[token] for token in running.values_list("token", flat=True)]


def run_one(waiting: Ready) -> None:
    """Work one local job in a transaction of its own."""
    if attempts.stopping() or not has_time(waiting):
        release(waiting.job)
        return
    try:
        with transaction.atomic(using=sql.database().alias, durable=True):
            done = _work(waiting)
            _finish_all([done])
    except LeaseLost:
        logger.warning("lease_lost", extra={"job": waiting.job.id})
    except Undone as undone:
        sql.database().close_if_unusable_or_obsolete()
        fail(undone.verdict)
        _tell(_Batch(failed=[undone.verdict]))
    except DatabaseError:
        for unfinished in _unfinished([waiting]):
            release(unfinished.job)
    else:
        _tell(_Batch(done=[done]))


def has_time(waiting: Ready) -> bool:
    """No handler starts with less than its limit left on the lease."""
    limit = waiting.kind.heartbeat or waiting.kind.limit or conf().job_limit
    return waiting.job.left >= limit
