"""The doorbell: the only module that talks to the broker, which may lose whatever it is told."""

import logging
import threading
import time
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


def ring_on_commit(queue: str, *, using: str) -> None:
    """Ring once the transaction on the database ``using`` has committed; else at once."""
    transaction.on_commit(partial(_ring_committed, queue), using=using, robust=True)


def _ring_committed(queue: str) -> None:
    reach(Point.UNRUNG)
    if _held.queues is None:
        ring(queue)
    else:
        _held.queues.add(queue)


class _Held(threading.local):
    queues: set[str] | None = None


_held = _Held()


@contextmanager
def bells_held() -> Iterator[None]:
    """Ring for what commits within only at the end, so that others need not wait for the broker."""
    _held.queues = set()
    try:
        yield
    finally:
        held, _held.queues = _held.queues, None
        for queue in held:
            ring(queue)


def ring(queue: str) -> None:
    """Tell a worker to look at ``queue`` now. Carries no job; a broker that is down is no error.

    Bells of one process are coalesced: the first rings at once, all that follow within 5 ms ring
    once more together. While more than one rings per 5 ms, they wait 10 ms, then 20 and 40 ms.
    """
    _bell.ring(queue)


def answers() -> bool:
    """Tell whether the broker can be reached now, within its connect timeout. Rings nothing."""
    try:
        with current_app.connection_for_write() as connection:
            connection.default_channel.close()
    except (OperationalError, OSError):
        return False
    return True


@dataclass
class _Bell:
    """Coalesces rings, and stops trying for a moment after the broker failed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ringing: dict[str, int] = field(default_factory=dict)
    """Queue to how many rang again since the last bell went out."""
    silent_until: float = 0.0
    silence: float = BREAK_FIRST

    def ring(self, queue: str) -> None:
        with self.lock:
            if queue in self.ringing:
                self.ringing[queue] += 1
                return
            self.ringing[queue] = 0
        self._send(queue)
        self._look_again(queue, AGAIN_FIRST)

    def _look_again(self, queue: str, seconds: float) -> None:
        timer = threading.Timer(seconds, self._settle, [queue, seconds])
        timer.daemon = True
        timer.start()

    def _settle(self, queue: str, waited: float) -> None:
        with self.lock:
            again = self.ringing.pop(queue, 0)
            if again:
                self.ringing[queue] = 0
        if again:
            self._send(queue)
            flood = again * AGAIN_FIRST > waited
            wait = min(waited * 2, AGAIN_MAX) if flood else AGAIN_FIRST
            self._look_again(queue, wait)

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


_bell = _Bell()
