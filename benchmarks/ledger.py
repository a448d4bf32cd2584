"""Fill the ledger set by set with any number of events and open letters, for the console to read."""

import sys
import time
from dataclasses import dataclass
from functools import cache

import psycopg
from django.utils import timezone

from benchmarks.measure import ROOT
from reliability.models import Source, Stretch, Tenant
from reliability.sweep.ledger import count_ledger

TABLES = [
    f"reliability_{name}"
    for name in (
        "processedkey", "body", "delivery", "receipt", "job", "attempt", "deadletter",
    )
]  # fmt: skip
SOURCES = 20
STEP = 100_000
DEEP = 0.9


@dataclass(frozen=True)
class Ledger:
    """What was filled: ``letters`` open ones, one in ``ratio`` of all events."""

    letters: int
    ratio: int

    @property
    def events(self) -> int:
        return self.letters * self.ratio


@cache
def tenant() -> Tenant:
    """Return the tenant of every benchmark, with the sources the ledger names."""
    found, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    for n in range(SOURCES):
        Source.objects.get_or_create(tenant=found, slug=f"source-{n}", scheme="stripe")
    return found


def fill(db: "psycopg.Connection[tuple[object, ...]]", ledger: Ledger) -> None:
    """Write the ledger into emptied tables; indexes and constraints are put back afterwards.

    Foreign keys come back unchecked: the rows agree because one statement numbers them.
    """
    began = time.perf_counter()
    owner = tenant()
    source = Source.objects.filter(tenant=owner, slug__startswith="source-").order_by("pk")[0]
    db.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE".encode())
    Stretch.objects.all().delete()
    taken = _take_off(db)
    text = (ROOT / "benchmarks" / "ledger.sql").read_text()
    for first in range(1, ledger.events + 1, STEP):
        last = min(first + STEP - 1, ledger.events)
        with db.transaction():
            db.execute(
                text.format(
                    first=first, last=last, ratio=ledger.ratio, events=ledger.events,
                    tenant=owner.pk, source=source.pk, sources=SOURCES,
                ).encode()
            )  # fmt: skip
    for statement in taken:
        db.execute(statement.encode())
    for table in TABLES:
        db.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'),"
            f" (SELECT max(id) FROM {table}))".encode()
        )
        db.execute(f"VACUUM ANALYZE {table}".encode())
    _count()
    print(
        f"filled {ledger.events} events, {ledger.letters} letters:"
        f" {time.perf_counter() - began:.0f} s", file=sys.stderr,
    )  # fmt: skip


def _count() -> None:
    """Count the ledger as sweeps have by the time it is this long."""
    before = None
    while before != (newest := Stretch.objects.newest()):
        count_ledger(timezone.now())
        before = newest


def _take_off(db: "psycopg.Connection[tuple[object, ...]]") -> list[str]:
    """Drop what costs time per row; return the statements that put it back."""
    again: list[str] = []
    foreign = db.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype = 'f' AND conrelid = ANY(%s::regclass[])",
        [TABLES],
    )
    for table, name, definition in foreign.fetchall():
        db.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'.encode())
        again.append(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition} NOT VALID')
    indexes = db.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
        " WHERE NOT indisunique AND indrelid = ANY(%s::regclass[])",
        [TABLES],
    )
    for name, definition in indexes.fetchall():
        db.execute(f"DROP INDEX {name}".encode())
        again.append(str(definition))
    return again
