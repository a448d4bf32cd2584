"""One start of one job: the handler under its limits, and a verdict whatever it does."""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import IntegrityError
from django.utils import timezone

from reliability.conf import conf
from reliability.errors import JobInterrupted, JobTimeout, OutsideEffectInLocalTransaction
from reliability.handlers import Event, Kind, LocalTransaction, UniqueConstraint
from reliability.work.lease import Leased
from reliability.work.settle import Done, Failed

logger = logging.getLogger(__name__)

UNIQUE_VIOLATION = "23505"


def attempt(job: Leased, kind: Kind, event: Event, *, own_job: bool) -> Done | Failed:
    """Run the handler once. Never raises: whatever the handler raises becomes a verdict."""
    started_at = timezone.now()
    try:
        with _limited(kind.limit or conf().job_limit), _inside(kind):
            return Done(job, kind.handle(event), started_at)
    except BaseException as error:  # noqa: BLE001 - the one place where a failure becomes a verdict
        if _applied_before(kind, error):
            return Done(job, None, started_at)
        return Failed(job, kind, error, started_at, own_job=own_job)


def _applied_before(kind: Kind, error: BaseException) -> bool:
    """Tell whether the error is the kind's own unique constraint recognising the repeat."""
    if not (isinstance(kind.sink, UniqueConstraint) and isinstance(error, IntegrityError)):
        return False
    diag = getattr(error.__cause__, "diag", None)
    if diag is None or diag.sqlstate != UNIQUE_VIOLATION:
        return False
    meta = apps.get_model(kind.sink.model)._meta  # noqa: SLF001 - Django's documented Model._meta
    column = meta.get_field(kind.sink.field).get_attname_column()[1]
    detail = (diag.message_detail or "").replace('"', "")
    return diag.table_name == meta.db_table and f"({column})=" in detail


# The time limit, and the shutdown that cuts a handler short.

stopping: Callable[[], bool] = lambda: False  # noqa: E731 - replaced by the worker's own flag
_running = threading.local()


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End the handler that runs in this process's main thread: its time is up, or ours is."""
    if not getattr(_running, "handler", False):
        return
    if stopping():
        raise JobInterrupted("the worker is shutting down")
    raise JobTimeout(f"the handler ran longer than its limit of {_running.limit}")


@contextmanager
def _limited(limit: timedelta) -> Iterator[None]:
    """Hold a handler in the main thread to its limit (SIGALRM); elsewhere the lease does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGALRM) is not interrupt:
        signal.signal(signal.SIGALRM, interrupt)
    _running.limit, _running.handler = limit, True
    signal.setitimer(signal.ITIMER_REAL, limit.total_seconds())
    try:
        yield
    finally:
        _running.handler = False
        signal.setitimer(signal.ITIMER_REAL, 0)


# In DEBUG and tests, a handler whose effects are rows may not open a socket.


def _watch_sockets(event: str, _arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and getattr(_running, "local", False):
        raise OutsideEffectInLocalTransaction(
            "a LocalTransaction handler opened a socket; that effect would outlive a rollback. "
            "Move it to a kind of its own with a sink of its own."
        )


_watching = threading.Event()


@contextmanager
def _inside(kind: Kind) -> Iterator[None]:
    if not (
        isinstance(kind.sink, LocalTransaction) and (settings.DEBUG or conf().refuse_sockets)
    ):
        yield
        return
    if not _watching.is_set():
        sys.addaudithook(_watch_sockets)
        _watching.set()
    _running.local = True
    try:
        yield
    finally:
        _running.local = False
