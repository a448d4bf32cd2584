"""Kinds with outside effects: in threads, each completed alone, claimed only as they start."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache
from threading import Barrier

from django.db import DatabaseError

from reliability import sql
from reliability.conf import conf
from reliability.killing import Point, reach
from reliability.work import attempt as attempts
from reliability.work.attempt import attempt
from reliability.work.batch import Ready, has_time, prepare, run_one
from reliability.work.destinations import DEFERRED
from reliability.work.effects import Effects
from reliability.work.lease import take
from reliability.work.nesting import abandon, open_transactions
from reliability.work.settle import (
    Deferred,
    Done,
    Failed,
    defer,
    fail,
    finish,
    finish_late,
    release,
)

logger = logging.getLogger(__name__)

WAIT_SECONDS = 0.05
"""How long a full set of threads may keep us from looking for more work or for the stop."""
GATHER_SECONDS = 0.002
"""How long, once one has ended, others may end too: a claim for many costs little more than one."""


@cache
def threads() -> ThreadPoolExecutor:
    """Return this process's threads; each keeps one connection of its own."""
    return ThreadPoolExecutor(conf().threads_max, thread_name_prefix="job")


def close_threads() -> None:
    """End this process's threads, and with them their connections."""
    if not threads.cache_info().currsize:
        return
    together = Barrier(conf().threads_max)
    for _ in range(conf().threads_max):
        threads().submit(_leave, together)
    threads().shutdown()
    threads.cache_clear()


def _leave(together: Barrier) -> None:
    together.wait()
    sql.database().close()


def run_outside(queue: str, goes_on: Callable[[], bool]) -> int:
    """Start due jobs as fast as threads come free, until there are none; return how many.

    As many more are claimed as ended since the claim before: while this one is made, that many
    threads come free again. Where jobs take long, few end, and none waits long for its thread.
    """
    running: set[Future[None]] = set()
    started, found, ended = 0, True, 0
    while running or found:
        free = conf().threads_max + ended - len(running)
        found = bool(free > 0 and goes_on())
        if found:
            leased = take(queue, limit=free)
            running |= {threads().submit(_guarded, ready) for ready in prepare(leased)}
            started += len(leased)
            found = bool(leased)
        left = _still(running)
        running, ended = left, len(running) - len(left)
    return started


def _still(running: set[Future[None]]) -> set[Future[None]]:
    done, left = wait(running, timeout=WAIT_SECONDS, return_when=FIRST_COMPLETED)
    if done and left:
        ended, left = wait(left, timeout=GATHER_SECONDS)
        done |= ended
    _raise(done)
    return set(left)


def _raise(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()


def _guarded(waiting: Ready) -> None:
    """Work one job; a database that went away leaves it to the sweep, not to a dead thread."""
    try:
        run_outside_one(waiting)
    except DatabaseError:
        logger.warning("job_left_to_the_sweep", extra={"job": waiting.job.id})
        sql.database().close_if_unusable_or_obsolete()


def run_outside_one(waiting: Ready) -> None:
    """Work one job whose effect happens elsewhere, in no transaction of ours."""
    if waiting.kind.queue == "local":
        run_one(waiting)
        return
    if attempts.stopping() or not has_time(waiting):
        release(waiting.job)
        return
    effects = Effects(waiting.job, waiting.kind)
    if not effects.begin():
        return
    event = replace(waiting.event, start=effects)
    verdict = attempt(waiting.job, waiting.kind, event, own_job=waiting.own_job)
    if isinstance(verdict, Done):
        reach(Point.UNFINISHED)
    if open_transactions() != effects.depth:
        # The handler left one open: the verdict must not hang on it.
        abandon()
    _settle(waiting, verdict, in_doubt=effects.in_doubt)


def _settle(waiting: Ready, verdict: Done | Failed, *, in_doubt: bool) -> None:
    match verdict:
        case Done(result=Deferred() as deferred):
            if not defer(waiting.job, deferred, DEFERRED):
                logger.info("completed_before_it_was_deferred", extra={"job": waiting.job.id})
        case Done():
            if not finish([verdict]) and not finish_late(verdict):
                logger.warning("result_came_too_late", extra={"job": waiting.job.id})
            reach(Point.COMMITTED)
        case Failed():
            fail(replace(verdict, in_doubt=in_doubt))
            logger.info(
                "job_failed",
                extra={"job": waiting.job.id, "kind": waiting.kind.name,
                       "error": type(verdict.error).__name__},
            )  # fmt: skip
