"""One start of one job: the handler under its limits, and a verdict whatever it does."""

import logging
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from types import FrameType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.errors import JobInterrupted, JobTimeout, OutsideEffectInLocalTransaction
from reliability.handlers import Event, Kind, LocalTransaction, UniqueConstraint
from reliability.work.lease import Leased
from reliability.work.settle import Done, Failed, plain

logger = logging.getLogger(__name__)

UNIQUE_VIOLATION = "23505"


def attempt(job: Leased, kind: Kind, event: Event, *, own_job: bool) -> Done | Failed:
    """Run the handler once. Never raises: whatever the handler raises becomes a verdict."""
    started_at = timezone.now()
    try:
        with (
            _limited(kind.deadline or kind.limit or conf().job_limit),
            _inside(kind),
            _rolled_back(kind),
        ):
            return Done(job, plain(kind.handle(event)), started_at)
    except BaseException as error:  # noqa: BLE001 - the one place where a failure becomes a verdict
        if original := _original(kind, error):
            return Done(job, original, started_at)
        return Failed(job, kind, error, started_at, own_job=own_job)


def _rolled_back(kind: Kind) -> AbstractContextManager[None]:
    """Give a handler whose insert may be refused a savepoint to fall back to."""
    if not isinstance(kind.sink, UniqueConstraint):
        return nullcontext()
    return transaction.atomic(using=sql.database().alias)


def _original(kind: Kind, error: BaseException) -> dict[str, Any] | None:
    """Return the row that stands already, where the error is the kind's own constraint speaking.

    The answer is that row's primary key; ``None`` for any other error. The value is read from the
    server's detail, "Key (column)=(value) …", whose words depend on its language, not its form.
    """
    if not (isinstance(kind.sink, UniqueConstraint) and isinstance(error, IntegrityError)):
        return None
    diag = getattr(error.__cause__, "diag", None)
    model = apps.get_model(kind.sink.model)
    column = model._meta.get_field(kind.sink.field).get_attname_column()[1]  # noqa: SLF001 - documented
    if diag is None or diag.sqlstate != UNIQUE_VIOLATION or diag.table_name != _table(model):
        return None
    told = re.search(
        rf"\({re.escape(column)}\)=\((.*)\)", (diag.message_detail or "").replace('"', "")
    )
    if told is None:
        return None
    standing = model._default_manager.filter(**{kind.sink.field: told[1]})  # noqa: SLF001 - documented
    return {"already_applied": str(standing.values_list("pk", flat=True).first())}


def _table(model: type[Model]) -> str:
    return model._meta.db_table  # noqa: SLF001 - documented


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
