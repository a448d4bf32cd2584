"""Lines on their way into the database: counted, given their operation, copied as they are read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from psycopg import Copy

from reliability import sql
from reliability.conf import conf
from reliability.models import Statement
from reliability.reconcile.formats.base import (
    Line,
    Quarantined,
    StatementError,
    content_hash,
)
from reliability.reconcile.reading import Told
from reliability.reconcile.scope import Scope
from reliability.reconcile.tally import Tally

TOLD_EVERY = 20_000
RAW_CHARACTERS_KEPT = 500
COLUMNS = (
    "tenant_id", "statement_id", "position", "identity", "provider_id", "references", "kind",
    "operation_class", "reference", "amount_minor", "currency", "exponent", "settled_minor",
    "settled_currency", "settled_exponent", "fee_minor", "net_minor", "occurred_at",
    "occurred_day", "booked_at", "booked_day", "available_at", "available_day", "batch",
    "status", "raw",
)  # fmt: skip
COPY = 'COPY reliability_statementline ("{}") FROM STDIN'.format('", "'.join(COLUMNS))
AMOUNT_MINOR_MAX = 2**63 - 1
KEY_BYTES_MAX = 255
ANALYSE_FROM_LINES = 10_000


@contextmanager
def copied(statement: Statement, scope: Scope, told: Told) -> Iterator["LineWriter"]:
    """Yield what stores one statement's lines; an error within takes back all of them.

    They are one COPY, which the database works off while more are read.
    """
    with sql.copying(COPY) as copy:
        yield LineWriter(statement, scope, told, copy)


class LineWriter:
    """Counts and stores one statement's lines; memory holds one, whatever the file's size."""

    def __init__(self, statement: Statement, scope: Scope, told: Told, copy: Copy) -> None:
        """Tell ``told`` every so often how many lines are on their way."""
        self._statement = statement
        self._ids = (statement.tenant_id, statement.pk)
        self._scope = scope
        self._told = told
        self._copy = copy
        self.tally = Tally()
        self.quarantined: list[dict[str, Any]] = []

    def add(self, item: Line | Quarantined) -> None:
        """Count one row and keep it. Raises ``StatementError`` for too many unreadable ones."""
        if isinstance(item, Line) and (why := unstorable(item)):
            item = Quarantined(item.position, item.raw, why)
        self.tally.add(item)
        match item:
            case Line():
                self._copy.write_row(self._row(item))
                if not self.tally.lines % TOLD_EVERY:
                    self._told(self.tally.lines)
            case Quarantined():
                self._quarantine(item)

    def finish(self) -> Statement:
        """Number the rows that repeat, once all are stored."""
        if self.tally.lines >= ANALYSE_FROM_LINES:
            sql.command("ANALYZE reliability_statementline")
        sql.rows_planned_anew("number_repeats", _Repeat, statement_id=self._statement.pk)
        return self._statement

    def _quarantine(self, row: Quarantined) -> None:
        if len(self.quarantined) == conf().quarantined_max:
            rule = f"more than {conf().quarantined_max} rows cannot be read: {row.reason}"
            raise StatementError(row.position, rule, "choose the format of this file")
        self.quarantined.append(
            {
                "position": row.position,
                "raw": _plain(row.raw[:RAW_CHARACTERS_KEPT]),
                "reason": _plain(row.reason[:RAW_CHARACTERS_KEPT]),
            }
        )

    def _row(self, line: Line) -> tuple[Any, ...]:
        named, reference = self._scope.operation(line)
        identity = f"id:{line.provider_id}" if line.provider_id else f"is:{content_hash(line)}"
        if reference and len(reference.encode()) > KEY_BYTES_MAX:
            reference = None
        return (
            *self._ids, line.position, identity,
            line.provider_id, _object(line.references), line.kind, named, reference,
            line.amount_minor, line.currency, line.exponent, line.settled_minor,
            line.settled_currency, line.settled_exponent, line.fee_minor, line.net_minor,
            _instant(line.occurred_at), line.occurred_day, _instant(line.booked_at),
            line.booked_day, _instant(line.available_at), line.available_day, line.group,
            line.status, line.raw,
        )  # fmt: skip


@lru_cache(maxsize=8192)
def _instant(at: datetime | None) -> str | None:
    """Write an instant out; a file's lines share seconds, and so do some thousand in a row."""
    return at.isoformat() if at else None


def _object(texts: Mapping[str, str]) -> str:
    """Write texts as a JSON object; the general encoder takes three times as long per line."""
    named = [f"{_quoted(k)}:{encode_basestring(v)}" for k, v in texts.items()]
    return f"{{{','.join(named)}}}"


_quoted = lru_cache(maxsize=256)(encode_basestring)


def unstorable(line: Line) -> str:
    """Say why a line cannot be kept as it is, or nothing."""
    for amount in (line.amount_minor, line.settled_minor, line.fee_minor, line.net_minor):
        if amount is not None and abs(amount) > AMOUNT_MINOR_MAX:
            return "an amount is out of bounds"
    own = line.provider_id or ""
    if len(own) > KEY_BYTES_MAX:
        return f"its id is longer than {KEY_BYTES_MAX} characters"
    texts = (
        line.kind,
        line.status,
        own,
        line.group or "",
        line.raw,
        *line.references.values(),
    )
    text = "".join(texts)
    return "" if text == _plain(text) else "it holds characters that are no text"


def _plain(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


class _Repeat:
    def __init__(self, **_: int) -> None:
        """Nothing is needed of a repeat but that it was numbered."""
