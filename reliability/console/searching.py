"""Searches with an end: a text index, payloads read up to a limit, and a time after which to give up."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import psycopg
from django.db import OperationalError, connection, transaction
from django.db.models import F, Lookup, QuerySet
from django.db.models.functions import Length

from reliability import sql
from reliability.claim.body import JsonValue, Unparseable, load
from reliability.console.redact import hidden_by_name, hide
from reliability.models import Body, DeadLetter

SEARCH_SECONDS_MAX = 5
TEXT_MIN = 3
"""Shorter texts hold no trigram: the index could not help."""
PAYLOADS_MAX = 2_000
PAYLOAD_BYTES_MAX = 1024 * 1024
"""Larger payloads are not read by a search."""
READ_BYTES_MAX = 32 * 1024 * 1024
"""What one search reads altogether."""
PAYLOADS_PER_FETCH = 50
LITERALS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
NO_LETTER = 0
"""An id no letter has: a search without a match stays a condition the database can read."""


class TooSlow(Exception):
    """The database gave up after ``SEARCH_SECONDS_MAX``."""


@contextmanager
def bounded() -> Iterator[None]:
    """Run the statements of a list with a time limit of their own. Raises TooSlow."""
    try:
        with transaction.atomic(using=sql.database().alias):
            sql.command(f"SET LOCAL statement_timeout = '{SEARCH_SECONDS_MAX}s'")
            yield
    except OperationalError as err:
        if isinstance(err.__cause__, psycopg.errors.QueryCanceled):
            raise TooSlow from err
        raise


class Mentions(Lookup):
    """``ILIKE``: the one form of a text search that the trigram index answers."""

    lookup_name = "mentions"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, given = self.process_lhs(compiler, connection)
        right, more = self.process_rhs(compiler, connection)
        return f"{left} ILIKE {right}", (*given, *more)


def mentioning(letters: "QuerySet[Any]", text: str) -> "QuerySet[Any]":
    """Choose letters whose error message holds ``text``, whatever its case; nothing is a wildcard."""
    pattern = f"%{connection.ops.prep_for_like_query(text)}%"
    return letters.filter(Mentions(F("message"), pattern))


@dataclass(frozen=True)
class PayloadAsked:
    """A place in a payload and the value it must have."""

    steps: tuple[str, ...]
    value: str

    @property
    def private(self) -> bool:
        """Whether it names what a viewer may not see."""
        return any(map(hidden_by_name, self.steps)) or hide(self.value) != self.value

    def met_by(self, raw: bytes) -> bool:
        """Tell whether a body, strictly read, has the value there. A number is met by its amount."""
        try:
            found = load(raw)
        except Unparseable:
            return False
        for step in self.steps:
            match found:
                case dict() if step in found:
                    found = found[step]
                case list() if step.isdecimal() and int(step) < len(found):
                    found = found[int(step)]
                case _:
                    return False
        return self._equals(found)

    def _equals(self, found: JsonValue) -> bool:
        match found:
            case str():
                return found == self.value
            case bool() | None:
                return self.value in LITERALS and LITERALS[self.value] is found
            case int() | Decimal():
                try:
                    return Decimal(self.value) == found
                except InvalidOperation:
                    return False
            case _:
                return False


def read_payload(text: str) -> PayloadAsked | None:
    """Read ``path=value``, such as ``data.object.amount=4200``; ``None`` for anything else."""
    path, equals, value = text.partition("=")
    steps = tuple(path.strip().split("."))
    return PayloadAsked(steps, value.strip()) if equals and all(steps) else None


@dataclass(frozen=True)
class PayloadsFound:
    """Letters whose payload has the value; ``cut`` when not every payload was read."""

    letter_ids: list[int]
    read: int
    cut: bool


def find_payloads(letters: "QuerySet[DeadLetter]", asked: PayloadAsked) -> PayloadsFound:
    """Read the payloads of the newest of ``letters``, as first received, and keep those that match.

    Stops at ``PAYLOADS_MAX`` letters or ``READ_BYTES_MAX``; both depend on rows alone, so that a
    list and an act on it find the same.
    """
    newest = letters.order_by("-buried_at", "-pk").values_list("pk", "job__key_id")
    some = list(newest[: PAYLOADS_MAX + 1])
    found: list[int] = []
    read, left, cut = 0, READ_BYTES_MAX, len(some) > PAYLOADS_MAX
    for start in range(0, min(len(some), PAYLOADS_MAX), PAYLOADS_PER_FETCH):
        if left <= 0:
            return PayloadsFound(found, read, cut=True)
        few = some[start : min(start + PAYLOADS_PER_FETCH, PAYLOADS_MAX)]
        bodies = _bodies([key for _, key in few])
        left -= sum(map(len, bodies.values()))
        read += len(bodies)
        cut = cut or len(bodies) < len(few)
        found += [pk for pk, key in few if key in bodies and asked.met_by(bodies[key])]
    return PayloadsFound(found, read, cut)


def _bodies(keys: list[int]) -> dict[int, bytes]:
    bodies = Body.objects.filter(key__in=keys, first=True).annotate(size=Length("raw"))
    small = bodies.filter(size__lte=PAYLOAD_BYTES_MAX)
    return {key: bytes(raw) for key, raw in small.values_list("key_id", "raw")}
