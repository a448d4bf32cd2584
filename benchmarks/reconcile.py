"""A day's statement against a day's operations: ours, data frames, a loop, and the bare statement.

    python manage.py bench reconcile [--size 1000000] [--rounds 3] [--part compare] [--json]

``compare``: seconds from the file to the report with everything stored (lines, verdicts,
discrepancies). The limit copies lines that are parsed already and joins them, into tables with the
same indexes. ``memory``: how far the client's peak rises above where it began, by size.
``--part tenfold``, only where it is asked for: ten times the lines beside the lines (a file is at
most 1 GiB: ``--size 800000``).
"""

import csv
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path

import psycopg
from django.db import transaction

from benchmarks.measure import Figures, report, rounds
from benchmarks.peers import frames
from reliability.models import Operation, Source, StatementLine, Tenant, Verdict
from reliability.reconcile.day import compare_day
from reliability.reconcile.statement import import_statement, receive

PARTS = ("memory", "compare")
DAY = date(2026, 10, 14)
START = datetime(2026, 10, 14, tzinfo=UTC)
SIZE = 1_000_000
MISSING_EACH, DIFFERS_EACH = 1_000, 2_500
ROWS_AT_ONCE = 5_000
HEADER = (
    "balance_transaction_id", "created_utc", "available_on_utc", "currency", "gross", "fee", "net",
    "reporting_category", "source_id", "description", "customer_facing_amount",
    "customer_facing_currency",
)  # fmt: skip


class Day:
    """One day's file and operations, and a database to put them in."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size = size
        self.statement = folder / f"statement-{size}.csv"
        self.operations = folder / f"operations-{size}.csv"
        self.lines = folder / f"lines-{size}.copy"
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.source = self._source()
        self._write()
        self._load()

    def _source(self) -> Source:
        tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
        source, _ = Source.objects.update_or_create(
            tenant=tenant, slug="stripe-live",
            defaults={
                "preset": "stripe", "scheme": "stripe", "statement_kinds": ["charge"],
                "statement_format": "stripe-balance-csv",
            },
        )  # fmt: skip
        return source

    def _write(self) -> None:
        step = timedelta(hours=20) / self.size
        with self.statement.open("w", newline="") as file, self.operations.open("w") as ours:
            sheet = csv.writer(file)
            sheet.writerow(HEADER)
            for n in range(self.size):
                at = f"{START + n * step:%Y-%m-%d %H:%M:%S}"
                minor = 100 + n % 9_000
                gross = f"{minor // 100}.{minor % 100:02}"
                sheet.writerow([
                    f"txn_{n:012}", at, at, "eur", gross, "0.25",
                    f"{(minor - 25) // 100}.{(minor - 25) % 100:02}", "charge",
                    f"ch_3QIvT2Lm2eZvKYlo{n:010}", f"Order {n}", "", "",
                ])  # fmt: skip
                if n % MISSING_EACH:
                    off = 0 if n % DIFFERS_EACH else 50
                    ours.write(f"ch_3QIvT2Lm2eZvKYlo{n:010},{minor + off},EUR,{at}\n")

    def _load(self) -> None:
        """Put our side where a day of webhooks would have left it."""
        self.db.execute(
            "TRUNCATE reliability_job, reliability_processedkey, reliability_operation CASCADE"
        )
        self.db.execute(
            "CREATE TEMP TABLE IF NOT EXISTS our (reference text, minor bigint, "
            "currency text, at timestamp); TRUNCATE our"
        )
        with (
            self.operations.open("rb") as file,
            self.db.cursor() as cursor,
            cursor.copy("COPY our FROM STDIN (FORMAT csv)") as copy,
        ):
            while piece := file.read(1 << 20):
                copy.write(piece)
        statements = Path(__file__).with_name("reconcile_load.sql").read_text()
        for statement in statements.split(";\n\n"):
            self.db.execute(statement, {"s": self.source.pk, "t": self.source.tenant_id})

    def clear(self) -> None:
        self.db.execute(
            "TRUNCATE reliability_verdict, reliability_discrepancy, reliability_report, "
            "reliability_statementline, reliability_statement, reliability_artefactpart, "
            "reliability_artefact CASCADE"
        )


def ours(day: Day) -> float:
    """From the file on disk to the committed report."""
    day.clear()
    began = time.perf_counter()
    with day.statement.open("rb") as stream:
        artefact = receive(day.source, name=day.statement.name, content=stream, by="bench")
    import_statement(artefact, DAY)
    made = compare_day(day.source, DAY, by="bench")
    seconds = time.perf_counter() - began
    missing = -(-day.size // MISSING_EACH)
    assert made.counts["missing"] == missing, made.counts
    return seconds


def bare(day: Day) -> float:
    """COPY of parsed lines and one FULL JOIN, into tables with the same indexes."""
    if not day.lines.exists():
        with (
            day.lines.open("wb") as file,
            day.db.cursor() as cursor,
            cursor.copy("COPY reliability_statementline TO STDOUT") as copy,
        ):
            for piece in copy:
                file.write(piece)
    empty_tables(day)
    began = time.perf_counter()
    with day.db.transaction():
        with (
            day.lines.open("rb") as file,
            day.db.cursor() as cursor,
            cursor.copy("COPY bare_line FROM STDIN") as copy,
        ):
            while piece := file.read(1 << 20):
                copy.write(piece)
        day.db.execute(Path(__file__).with_name("reconcile_bare.sql").read_text())
    return time.perf_counter() - began


def empty_tables(day: Day) -> None:
    """Make the tables of those who store what ours stores, with the same indexes."""
    day.db.execute(
        "DROP TABLE IF EXISTS bare_line, bare_verdict; "
        "CREATE TABLE bare_line (LIKE reliability_statementline INCLUDING ALL); "
        "CREATE TABLE bare_verdict (LIKE reliability_verdict INCLUDING ALL)"
    )


def pandas_stored(day: Day) -> float:
    """All columns by pandas, amounts as Decimal; lines and verdicts stored by COPY."""
    empty_tables(day)
    began = time.perf_counter()
    missing = frames.pandas_stored(day.statement, day.db, day.source.pk)
    assert missing == -(-day.size // MISSING_EACH), missing
    return time.perf_counter() - began


def loop_stored(day: Day) -> float:
    """A loop over the file and the ORM: lines and verdicts by ``bulk_create``."""
    from decimal import Decimal  # noqa: PLC0415 - the peer's own

    day.clear()
    began = time.perf_counter()
    tenant, missing = day.source.tenant_id, 0
    rows = Operation.objects.filter(source=day.source)
    known = {ref: (pk, minor) for pk, ref, minor in
             rows.values_list("pk", "reference", "amount_minor").iterator()}  # fmt: skip
    with day.statement.open(newline="") as file, transaction.atomic():
        sheet = enumerate(csv.DictReader(file), 2)
        while some := list(islice(sheet, ROWS_AT_ONCE)):
            lines = StatementLine.objects.bulk_create([
                StatementLine(
                    tenant_id=tenant, statement_id=1, position=position,
                    identity=f"id:{row['balance_transaction_id']}",
                    provider_id=row["balance_transaction_id"],
                    references={"source": row["source_id"]}, kind=row["reporting_category"],
                    operation_class=row["reporting_category"], reference=row["source_id"],
                    amount_minor=int(Decimal(row["gross"]) * 100),
                    currency=row["currency"].upper(), exponent=2,
                    fee_minor=int(Decimal(row["fee"]) * 100),
                    net_minor=int(Decimal(row["net"]) * 100),
                    occurred_at=f"{row['created_utc']}Z", available_at=f"{row['available_on_utc']}Z",
                    status="", raw=",".join(row.values()),
                )
                for position, row in some
            ])  # fmt: skip
            verdicts = []
            for line in lines:
                pk, minor = known.pop(line.reference, (None, None))
                missing += pk is None
                verdict = "missing" if pk is None else "matched"
                verdict = "amount_mismatch" if pk and minor != line.amount_minor else verdict
                verdicts.append(Verdict(
                    tenant_id=tenant, report_id=1, line_id=line.pk, operation_id=pk,
                    verdict=verdict, cause="", operation_class="charge",
                    reference=line.reference, their_minor=line.amount_minor, our_minor=minor,
                    currency="EUR", exponent=2,
                ))  # fmt: skip
            Verdict.objects.bulk_create(verdicts)
    assert missing == -(-day.size // MISSING_EACH), missing
    return time.perf_counter() - began


def loop(day: Day) -> float:
    """Compare in Python, our side by the ORM, amounts as Decimal; nothing is stored."""
    from decimal import Decimal  # noqa: PLC0415 - the peer's own

    began = time.perf_counter()
    rows = Operation.objects.filter(source=day.source)
    known = dict(rows.values_list("reference", "amount_minor").iterator())
    missing, differs = [], []
    with day.statement.open(newline="") as file:
        for row in csv.DictReader(file):
            amount = known.pop(row["source_id"], None)
            if amount is None:
                missing.append(row["source_id"])
            elif Decimal(row["gross"]) * 100 != amount:
                differs.append(row["source_id"])
    assert len(missing) == -(-day.size // MISSING_EACH)
    return time.perf_counter() - began


def memory(size: int, folder: Path) -> Figures:
    """Measure first of all, the small day before the big one: a peak never falls."""
    figures = Figures("reconcile memory", "MiB above start", lower_is_better=True)
    before = 0.0
    for one in (size // 10, size):
        day = Day(one, folder)
        before = before or _peak_mib()
        ours(day)
        figures.add("ours" if one == size else f"ours at {one}", _peak_mib() - before)
    return figures


def tenfold(size: int, folder: Path) -> Figures:
    """One day and one of ten times its lines: work that grows faster than its lines shows here."""
    figures = Figures("reconcile, ten times the lines", "s", lower_is_better=True)
    for name, lines in (("a tenth of the lines", size), ("ours", 10 * size)):
        figures.add(name, ours(Day(lines, folder)))
    return figures


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(size: int, count: int, folder: Path) -> Figures:
    figures = Figures("reconcile", "s", lower_is_better=True)
    day = Day(size, folder)
    contenders: dict[str, Callable[[], float]] = {
        "ours": lambda: ours(day),
        "limit": lambda: bare(day),
        "Django loop, everything stored": lambda: loop_stored(day),
        "pandas with Decimal, everything stored": lambda: pandas_stored(day),
        "Django loop": lambda: loop(day),
    }
    for name, peer in frames.PEERS.items():
        contenders[name] = lambda peer=peer: _timed(peer, day)
    rounds(count, contenders, figures)
    return figures


def _timed(peer: Callable[[Path, Path], int], day: Day) -> float:
    began = time.perf_counter()
    missing = peer(day.statement, day.operations)
    assert missing == -(-day.size // MISSING_EACH), missing
    return time.perf_counter() - began


def main(*, size: int | None, rounds: int, parts: list[str], as_json: bool) -> None:
    chosen = size or SIZE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = []
        if "memory" in parts:
            found.append(memory(chosen, folder))
        if "compare" in parts:
            found.append(compare(chosen, rounds, folder))
        if "tenfold" in parts:
            found.append(tenfold(chosen, folder))
    report(found, as_json=as_json)
    sys.stdout.flush()
