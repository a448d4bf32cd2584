"""What a bell sets off: claim and work until nothing is due."""

import time
from collections.abc import Callable

from reliability import dispatch
from reliability.conf import conf
from reliability.work import attempt as attempts
from reliability.work.batch import prepare, run_batch
from reliability.work.confirm import confirm_due
from reliability.work.lease import take, take_alone
from reliability.work.outside import run_outside, run_outside_one

LOCAL, OUTSIDE = "local", "outside"
QUEUES = (LOCAL, OUTSIDE)


def drain(queue: str) -> int:
    """Work ``queue`` until it gives nothing more; return how many jobs were started.

    Claims for at most 20 s, then rings for a successor, so that no queue holds a worker for
    itself. Jobs with a crash behind them run alone, one before and the rest after the others.
    """
    until = time.monotonic() + conf().drain_time.total_seconds()

    def goes_on() -> bool:
        return time.monotonic() < until and not attempts.stopping()

    started = confirm_due(goes_on) if queue == OUTSIDE else 0
    started += _alone(queue)
    started += _local(goes_on) if queue == LOCAL else run_outside(queue, goes_on)
    while goes_on() and (one := _alone(queue)):
        started += one
    if started and not goes_on() and not attempts.stopping():
        dispatch.ring(queue)
    return started


def _alone(queue: str) -> int:
    leased = None if attempts.stopping() else take_alone(queue)
    if leased is None:
        return 0
    for ready in prepare([leased]):
        run_outside_one(ready)
    return 1


def _local(goes_on: Callable[[], bool]) -> int:
    started, rung = 0, False
    while goes_on():
        leased = take(LOCAL, limit=conf().batch_max)
        if not leased:
            break
        if len(leased) == conf().batch_max and not rung:
            dispatch.ring(LOCAL)
            rung = True
        started += len(leased)
        run_batch(prepare(leased))
    return started
