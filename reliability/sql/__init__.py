"""Statements the ORM cannot say in one round trip: one file each, named for what it does."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import resources
from time import monotonic
from typing import Any, TypeVar

import psycopg
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.rows import class_row
from psycopg.types.json import JsonbLoader

from reliability.conf import conf
from reliability.models import Job

Row = TypeVar("Row")

PREPARED_WHEN_ASKED = 2**31 - 1
"""Executions after which psycopg prepares a statement unasked: none is, but those that ask."""
PLANNED_FOR_SECONDS = 5
"""How long a plan is used. One made for an empty table reads it whole, however large it became."""
PLANS_KEPT = 32
"""Per connection; the one used longest ago is let go."""

_NAMED = re.compile(r"%\((?P<name>\w+)\)s|%%")


@cache
def statement(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return resources.files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def database() -> BaseDatabaseWrapper:
    """Return this thread's connection to the database that holds the engine's tables."""
    return connections[router.db_for_write(Job)]


def _connected() -> BaseDatabaseWrapper:
    """Return this thread's database, connected; of a kept connection the first use is a look."""
    wrapper = database()
    wrapper.close_if_health_check_failed()
    wrapper.ensure_connection()
    return wrapper


def rows(name: str, into: type[Row], /, **params: Any) -> list[Row]:
    """Run the named statement in the current transaction; each row becomes an ``into``.

    Parameters are bound by the server, and the statement is prepared once per connection
    and ``PLANNED_FOR_SECONDS`` (``conf().prepare_statements``). Errors are Django's own database
    errors.
    """
    wrapper = _connected()
    # Django's own cursors bind on the client: these long statements would be planned each time.
    cursor: psycopg.RawCursor[Row] = psycopg.RawCursor(
        wrapper.connection, row_factory=class_row(into)
    )
    given = [params[each] for each in _numbered(name)[1]]
    with wrapper.wrap_database_errors, cursor:
        # Django's connections leave JSON as text; statements here return values.
        cursor.adapters.register_loader("jsonb", JsonbLoader)
        with _preparing(wrapper.connection):
            text = _dated(name, int(monotonic() // PLANNED_FOR_SECONDS))
            cursor.execute(text, given, prepare=conf().prepare_statements)
        return cursor.fetchall()


@cache
def _numbered(name: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2 … for its parameters, and their names in that order.

    A cursor that takes names looks for those of a long statement anew at each execution.
    """
    order: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        named = found["name"]
        return f"${order.setdefault(named, len(order) + 1)}" if named else "%"

    return _NAMED.sub(number, statement(name)), tuple(order)


@lru_cache(maxsize=2 * PLANS_KEPT)
def _dated(name: str, period: int) -> bytes:
    """Return a statement that is another one, to be planned anew, in each period of a plan."""
    return f"{_numbered(name)[0]}\n-- plan {period}".encode()


@contextmanager
def _preparing(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let a statement be prepared that asks for it, also where Django forbids it with ``None``.

    For that statement only: with any other threshold a rollback to a savepoint, such as a failing
    handler's, would make psycopg forget all that is prepared.
    """
    before = connection.prepare_threshold
    if before is None:
        connection.prepare_threshold = PREPARED_WHEN_ASKED
        connection.prepared_max = PLANS_KEPT
    try:
        yield
    finally:
        connection.prepare_threshold = before


def rows_planned_anew(name: str, into: type[Row], /, **params: Any) -> list[Row]:
    """Run the named statement as ``rows`` does, planned for the very values it is given.

    For statements over many rows. Where the connection's own ``plan_cache_mode`` is set to save
    the planning of small ones, it is set aside for this one; for the rest of the transaction so is
    the compiling of expressions, which costs these statements more than it saves.
    """
    command("SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off")
    found = rows(name, into, **params)
    # Else each foreign key of each row would be planned anew as COMMIT checks it. Plans of before
    # are thrown away: one made while a table was small reads it whole, for each row.
    command("SET LOCAL plan_cache_mode TO DEFAULT; DISCARD PLANS")
    return found


@contextmanager
def copying(text: str, params: Sequence[Any] = ()) -> Iterator[psycopg.Copy]:
    """Yield a COPY to read from or to write to; an error within ends it and takes back its rows.

    The connection is taken up until the block ends: nothing else may be asked of it meanwhile.
    """
    wrapper = _connected()
    with (
        wrapper.wrap_database_errors,
        wrapper.connection.cursor() as cursor,
        cursor.copy(text, params or None) as copy,
    ):
        yield copy


def command(text: str) -> None:
    """Send commands that take no parameters and return nothing, in one round trip.

    Inside a transaction libpq sends them itself: each job of a batch needs some, and what a cursor
    does around them costs more than they do.
    """
    wrapper = _connected()
    connection: psycopg.Connection[Any] = wrapper.connection
    with wrapper.wrap_database_errors:
        if connection.pgconn.transaction_status != TransactionStatus.INTRANS:
            connection.execute(text)
            return
        result = connection.pgconn.exec_(text.encode())
        if connection.broken:
            raise errors.OperationalError(result.get_error_message())
        if result.status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result)
