"""A worker that went deaf: messages wait for it while it has nothing to do; it connects anew."""

import logging
import threading
from collections.abc import Iterable
from typing import Any

from celery.worker import state
from kombu.connection import Connection
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Between two looks; a worker that hears takes a message within milliseconds."""


def start(consumer: Any) -> None:
    """Watch one worker's ears from a thread of its parent, for as long as it runs.

    Over Redis an acknowledgement that fails with its connection keeps its place in the prefetch
    count for good. A worker all of whose places were taken so no longer reads, does not notice
    that the broker came back, and looks healthy (celery issues 8030, 8384, 9054, 10302).
    """
    threading.Thread(target=_watch, args=[consumer], name="hearing", daemon=True).start()


def _watch(consumer: Any) -> None:
    pause, queues = threading.Event(), list(consumer.app.amqp.queues.consume_from)
    before = None
    while not pause.wait(LOOK_SECONDS):
        try:
            now = _unheard(queues, consumer.app.connection_for_read())
        except Exception:  # a watch that ended would be missed by nobody until it is needed
            logger.exception("hearing_not_known")
            now = None
        if now is not None and now == before:
            logger.warning("worker_deaf", extra={"started": now})
            consumer.call_soon(_connect_anew)
            now = None
        before = now


def _unheard(queues: Iterable[str], broker: Connection) -> int | None:
    """Return how much was started so far, where nothing is in hand although messages wait."""
    if state.reserved_requests:
        return None
    with broker:
        waiting = any(_waiting(queue, broker) for queue in queues)
    return int(sum(state.total_count.values())) if waiting else None


def _waiting(queue: str, broker: Connection) -> bool:
    """Tell whether messages wait; none do in a queue that is not there or cannot be asked."""
    try:
        channel: Any = broker.default_channel
        return bool(channel.queue_declare(queue, passive=True).message_count)
    except (*broker.connection_errors, *broker.channel_errors, OperationalError):
        return False


def _connect_anew() -> None:
    """Fail in the worker's loop as a lost connection does, so that all of it is made anew."""
    raise ConnectionResetError("messages wait and none is heard")
