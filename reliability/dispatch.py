"""The doorbell: the only module that talks to the broker, which may lose whatever it is told."""

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from reliability.killing import Point, reach

logger = logging.getLogger(__name__)

DRAIN = "reliability.drain"
AGAIN_FIRST, AGAIN_MAX = 0.005, 0.04
BREAK_FIRST, BREAK_MAX = 0.5, 5.0


def ring_on_commit(queue: str, times: int = 1, *, using: str) -> None:
    """Ring once the transaction on the database ``using`` has committed; else at once."""
    transaction.on_commit(partial(_ring_committed, queue, times), using=using, robust=True)


def _ring_committed(queue: str, times: int) -> None:
    reach(Point.UNRUNG)
    if _held.queues is None:
        ring(queue, times)
    else:
        _held.queues[queue] += times


class _Held(threading.local):
    queues: Counter[str] | None = None


_held = _Held()


@contextmanager
def bells_held() -> Iterator[None]:
    """Ring for what commits within only at the end, so that others need not wait for the broker."""
    _held.queues = Counter()
    try:
        yield
    finally:
        held, _held.queues = _held.queues, None
        for queue, times in held.items():
            ring(queue, times)


def ring(queue: str, times: int = 1) -> None:
    """Tell a worker to look at ``queue`` now. Carries no job; a broker that is down is no error.

    Bells of one process are coalesced: the first rings at once, all that follow within 5 ms ring
    once more together. While more than one rings per 5 ms, they wait 10 ms, then 20 and 40 ms.
    ``times``: for how many jobs this one rings.
    """
    _bell.ring(queue, times)


def answers() -> bool:
    """Tell whether the broker can be reached now, within its connect timeout. Rings nothing."""
    try:
        with current_app.connection_for_write() as connection:
            connection.default_channel.close()
    except (OperationalError, OSError):
        return False
    return True


@dataclass
class _Out:
    """A queue's last bell: until when others wait for the next, for how long in all, how many."""

    until: float
    wait: float
    again: int = 0


@dataclass
class _Bell:
    """Coalesces rings, and stops trying for a moment after the broker failed.

    A thread of its own, begun when first somebody waits, rings for those who rang too soon.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    out: dict[str, _Out] = field(default_factory=dict)
    somebody_waits: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    silent_until: float = 0.0
    silence: float = BREAK_FIRST

    def ring(self, queue: str, times: int = 1) -> None:
        now = time.monotonic()
        with self.lock:
            last = self.out.get(queue)
            if last and now < last.until:
                last.again += times
                self._have_rung()
                return
            self.out[queue] = _Out(now + AGAIN_FIRST, AGAIN_FIRST)
        self._send(queue)

    def _have_rung(self) -> None:
        if self.thread is None:
            self.thread = threading.Thread(target=self._ring_on, name="bell", daemon=True)
            self.thread.start()
        self.somebody_waits.set()

    def _ring_on(self) -> None:
        seconds = None
        while True:
            self.somebody_waits.wait(seconds)
            self.somebody_waits.clear()
            seconds = self.ring_for_those_who_wait()

    def ring_for_those_who_wait(self) -> float | None:
        """Ring each queue whose wait is over; return in how many seconds the next one's is."""
        now = time.monotonic()
        with self.lock:
            waiting = {queue: out for queue, out in self.out.items() if out.again}
            over = [queue for queue, out in waiting.items() if out.until <= now]
            for queue in over:
                self.out[queue] = _next(waiting.pop(queue), now)
        for queue in over:
            self._send(queue)
        return min((out.until - now for out in waiting.values()), default=None)

    def _send(self, queue: str) -> None:
        if time.monotonic() < self.silent_until:
            return
        try:
            current_app.send_task(
                DRAIN, args=[queue], queue=queue, retry=False, ignore_result=True
            )
        except (OperationalError, OSError):
            self.silent_until = time.monotonic() + self.silence
            self.silence = min(self.silence * 2, BREAK_MAX)
            logger.warning("bell_lost", extra={"queue": queue})
        else:
            self.silence = BREAK_FIRST


def _next(last: _Out, now: float) -> _Out:
    """Return the wait after one is over: twice as long while it is a flood."""
    flood = last.again * AGAIN_FIRST > last.wait
    wait = min(last.wait * 2, AGAIN_MAX) if flood else AGAIN_FIRST
    return _Out(now + wait, wait)


_bell = _Bell()


def _begin_anew() -> None:
    """In a forked process the parent's thread, and whoever waited for it, are not."""
    vars(_bell).update(vars(_Bell()))


os.register_at_fork(after_in_child=_begin_anew)
