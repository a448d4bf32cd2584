"""Jobs beside peers: throughput, failures, poison, enqueue, latency and growth, in one run.

    python manage.py bench jobs [--jobs 10000] [--rounds 3] [--json]

Every contender's job is one idempotent insert into the same table; a rate is jobs over the time
between the first and the last effect, by the database's clock. Two worker processes each.
"""

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from uuid import uuid4

import psycopg
import redis

from benchmarks import ledger
from benchmarks.handlers import http, orm, size
from benchmarks.measure import (
    ADDRESSES,
    CELERY,
    OURS,
    ROOT,
    WORKER,
    Figures,
    processes,
    report,
    rounds,
    wait_until,
)
from benchmarks.peers import celery_claim, dramatiq_plain, effect, procrastinate_jobs
from reliability.claim.accept import Asked, claim
from reliability.claim.enqueue import OwnSource, enqueue, enqueue_many, internal_source
from reliability.handlers import find
from reliability.models import Tenant

SETTLE_SECONDS = 120
MANY, GROWN = 1_000, 100
WARMING = 100
"""Jobs before latency is measured: a process that has just started connects, imports and plans."""
SAME_ROWS = "the same rows by a bare statement"
SAME_ROWS_SQL = (ROOT / "benchmarks" / "same_rows.sql").read_text()


def environment(url: str | None = None) -> dict[str, str]:
    """Return a contender's environment: peers know plain addresses and no Django."""
    hidden = ("DJANGO_SETTINGS_MODULE",) if url else ADDRESSES
    return {name: value for name, value in os.environ.items() if name not in hidden}


class Bench:
    """One database, emptied between measurements."""

    def __init__(self, jobs: int) -> None:
        self.url = os.environ["DATABASE_URL"]
        self.jobs = jobs
        self.db = psycopg.connect(self.url, autocommit=True)
        self.db.execute(effect.TABLE)

    def count(self) -> int:
        return self.db.execute("SELECT count(*) FROM effect").fetchone()[0]

    def rate(self, jobs: int) -> float:
        """Return effects per second between the first and the last."""
        wait_until(lambda: self.count() >= jobs, seconds=SETTLE_SECONDS)
        seconds = self.db.execute(
            "SELECT extract(epoch FROM max(at) - min(at)) FROM effect"
        ).fetchone()[0]
        return (jobs - 1) / float(seconds)

    def done_rate(self) -> float:
        """Return jobs per second between the first start and the last end."""
        wait_until(lambda: self._done()[0] >= self.jobs, seconds=SETTLE_SECONDS)
        done, seconds = self._done()
        return done / float(seconds)

    def _done(self) -> tuple[int, float]:
        return self.db.execute(
            "SELECT count(*), extract(epoch FROM max(ended_at) - min(started_at)) "
            "FROM reliability_job WHERE state = 'done'"
        ).fetchone()

    def clear(self) -> None:
        redis.Redis.from_url(os.environ["BROKER_URL"]).flushdb()
        self.db.execute("TRUNCATE effect")
        self.db.execute(
            "TRUNCATE reliability_job, reliability_processedkey, reliability_attempt, "
            "reliability_body, reliability_receipt, reliability_deadletter, "
            "reliability_operation, reliability_run CASCADE"
        )

    def peer_jobs(self) -> None:
        """Make the tables of Celery's claim anew."""
        self.db.execute("DROP TABLE IF EXISTS peer_job, peer_attempt")
        self.db.execute(celery_claim.SCHEMA)

    def enqueue(self, kind: str, jobs: int) -> None:
        """Fill our own queue as ``enqueue`` would, a thousand at a time."""
        tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
        source, queue = internal_source(tenant, kind), find(kind).queue
        for start in range(0, jobs, 1000):
            claim(source, [
                Asked(key=f"{kind}-{n}", kind=kind, queue=queue, body=b"{}")
                for n in range(start, min(start + 1000, jobs))
            ])  # fmt: skip
        self.db.execute("VACUUM ANALYZE reliability_job")

    def same_rows(self, own: OwnSource, keys: list[str]) -> None:
        """Insert what ``enqueue`` leaves behind, and ask nothing."""
        rows = {"tenant_id": own.tenant_id, "source_id": own.pk, "keys": keys}
        self.db.execute(SAME_ROWS_SQL, rows, prepare=True)

    def ours(self, kind: str) -> float:
        self.clear()
        self.enqueue(kind, self.jobs)
        with processes(OURS, environment()):
            return self.rate(self.jobs)

    def ours_over(self, before: ledger.Ledger) -> float:
        """Measure ours where so much stands in the tables already."""
        self.clear()
        ledger.fill(self.db, before)
        self.enqueue("bench.local", self.jobs)
        with processes(OURS, environment()):
            return self.rate(self.jobs)

    def celery(self, task: str, peer: ModuleType = celery_claim) -> float:
        self.clear()
        self.peer_jobs()
        made = self.db.execute(
            "INSERT INTO peer_job (key) SELECT 'k' || n FROM generate_series(1, %s) n "
            "RETURNING id, key",
            [self.jobs],
        ).fetchall()
        for job_id, key in made:
            getattr(peer, task).delay(key if task == "plain" else job_id)
        with processes([[*CELERY, peer.__name__, *WORKER]], environment(self.url)):
            return self.rate(self.jobs)

    def dramatiq(self) -> float:
        self.clear()
        for n in range(self.jobs):
            dramatiq_plain.plain.send(f"k{n}")
        command = ["-m", "dramatiq", "benchmarks.peers.dramatiq_plain", "--processes=2",
                   "--threads=4"]  # fmt: skip
        with processes([command], environment(self.url)):
            return self.rate(self.jobs)

    def procrastinate(self) -> float:
        self.clear()
        app = procrastinate_jobs.app
        with app.open():
            if not app.check_connection():
                app.schema_manager.apply_schema()
            self.db.execute("TRUNCATE procrastinate_jobs CASCADE")
            for start in range(0, self.jobs, 1000):
                procrastinate_jobs.plain.batch_defer(
                    *({"key": f"k{n}"} for n in range(start, min(start + 1000, self.jobs)))
                )
        workers = [["-m", "benchmarks.peers.procrastinate_jobs", "4"] for _ in range(2)]
        with processes(workers, environment(self.url)):
            return self.rate(self.jobs)

    def bare(self) -> float:
        self.clear()
        self.db.execute("DROP TABLE IF EXISTS bare_job, bare_attempt")
        self.db.execute("DROP PROCEDURE IF EXISTS bare_drain")
        self.db.execute((ROOT / "benchmarks" / "bare.sql").read_text())
        self.db.execute(
            "INSERT INTO bare_job (key) SELECT 'k' || n FROM generate_series(1, %s) n",
            [self.jobs],
        )
        self.db.execute("VACUUM ANALYZE bare_job")

        def drain() -> None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("CALL bare_drain(100)")

        threads = [threading.Thread(target=drain) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.rate(self.jobs)


def throughput(bench: Bench, count: int) -> Iterator[Figures]:
    figures = Figures("jobs, default mode", "jobs/s")
    rounds(count, {
        "ours": partial(bench.ours, "bench.local"),
        "celery, same guarantee": partial(bench.celery, "same_guarantee"),
        "celery, no state": partial(bench.celery, "plain"),
        "dramatiq, no state": bench.dramatiq,
        "procrastinate": bench.procrastinate,
        "limit": bench.bare,
    }, figures)  # fmt: skip
    yield figures
    outside = Figures("jobs, outside effects", "jobs/s")
    outside.peers = {"celery, same guarantee": figures.peers["celery, same guarantee"]}
    rounds(count, {"ours": partial(bench.ours, "bench.outside")}, outside)
    yield outside
    failing = Figures("jobs, 1 % failing", "jobs/s")
    rounds(count, {
        "ours": partial(bench.ours, "bench.failing"),
        "clean": partial(bench.ours, "bench.local"),
    }, failing)  # fmt: skip
    yield failing


def enqueueing(bench: Bench, count: int) -> Iterator[Figures]:
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    some = max(bench.jobs // 10, 500)
    own = internal_source(tenant, "bench.local")
    bench.peer_jobs()

    def per_second(step: Callable[[int], object]) -> float:
        bench.clear()
        started = time.perf_counter()
        for n in range(some):
            step(n)
        return some / (time.perf_counter() - started)

    def with_row(n: int) -> None:
        row = bench.db.execute(
            "INSERT INTO peer_job (key) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id",
            [f"{uuid4()}"],
        ).fetchone()
        celery_claim.same_guarantee.delay(row[0])

    def bare(n: int) -> None:
        bench.db.execute("INSERT INTO peer_job (key) VALUES (%s) RETURNING id", [f"{uuid4()}"])

    single = Figures("enqueue, one at a time", "jobs/s")
    rounds(count, {
        "ours": lambda: per_second(
            lambda n: enqueue("bench.local", key=f"{uuid4()}", tenant=tenant, payload={})
        ),
        "celery with a row": lambda: per_second(with_row),
        SAME_ROWS: lambda: per_second(lambda n: bench.same_rows(own, [f"{uuid4()}"])),
        "limit": lambda: per_second(bare),
    }, single)  # fmt: skip
    yield single
    yield bulk(bench, tenant, own, count)


def bulk(bench: Bench, tenant: Tenant, own: OwnSource, count: int) -> Figures:
    keys = [f"{uuid4()}" for _ in range(MANY * 10)]

    def many(step: Callable[[list[str]], object]) -> float:
        bench.clear()
        bench.db.execute("TRUNCATE peer_job")
        started = time.perf_counter()
        for at in range(0, len(keys), MANY):
            step(keys[at : at + MANY])
        return len(keys) / (time.perf_counter() - started)

    def bare_unnest(some: list[str]) -> None:
        bench.db.execute(
            "INSERT INTO peer_job (key) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING RETURNING id",
            [some],
        ).fetchall()

    figures = Figures(f"enqueue, {MANY} at a time", "jobs/s")
    rounds(count, {
        "ours": lambda: many(
            lambda some: enqueue_many("bench.local", [(key, {}) for key in some], tenant=tenant)
        ),
        SAME_ROWS: lambda: many(partial(bench.same_rows, own)),
        "limit": lambda: many(bare_unnest),
    }, figures)  # fmt: skip
    return figures


@contextmanager
def _idle_worker() -> Iterator[None]:
    with processes(OURS, environment()):
        time.sleep(5)
        yield


def latency(bench: Bench, count: int) -> Iterator[Figures]:
    """Enqueue at 100 a second through the doorbell; the wait until the effect, p50 and p99."""
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    p50, p99 = (
        Figures("latency at 100/s, p50", "ms", lower_is_better=True),
        Figures("latency at 100/s, p99", "ms", lower_is_better=True),
    )

    def paced(send: Callable[[str], object]) -> list[float]:
        bench.clear()
        sent: dict[str, float] = {}
        start = time.time()
        for n in range(WARMING + 500):
            time.sleep(max(0.0, start + n / 100 - time.time()))
            key = f"l-{n}-{uuid4().hex[:6]}"
            sent[key] = time.time()
            send(key)
        wait_until(lambda: bench.count() >= len(sent), seconds=60)
        rows = bench.db.execute("SELECT key, extract(epoch FROM at) FROM effect").fetchall()
        warm = set(list(sent)[WARMING:])
        return sorted(1000 * (float(at) - sent[key]) for key, at in rows if key in warm)

    def both(send: Callable[[str], object], name: str) -> None:
        waits = paced(send)
        p50.add(name, statistics.median(waits))
        p99.add(name, waits[int(len(waits) * 0.99)])

    for _ in range(count):
        with _idle_worker():
            both(
                lambda key: enqueue("bench.local", key=key, tenant=tenant, payload={}), "ours"
            )
        with processes(
            [[*CELERY, "benchmarks.peers.celery_claim", *WORKER]], environment(bench.url)
        ):
            time.sleep(5)
            both(celery_claim.plain.delay, "celery, no state")
    yield p50
    yield p99


def poison(bench: Bench, count: int) -> Iterator[Figures]:
    """Healthy jobs alone, beside as many that always fail, and over ten times as many letters."""
    figures = Figures("healthy jobs beside as many poisoned", "jobs/s")

    def beside() -> float:
        bench.clear()
        bench.enqueue("bench.poison", bench.jobs)
        bench.enqueue("bench.local", bench.jobs)
        with processes(OURS, environment()):
            return bench.rate(bench.jobs)

    rounds(count, {"ours": beside, "alone": partial(bench.ours, "bench.local")}, figures)
    yield figures
    standing = Figures(f"jobs over {10 * bench.jobs} open letters", "jobs/s")
    rounds(count, {
        "ours": partial(bench.ours_over, ledger.Ledger(10 * bench.jobs, 1)),
        "none open": partial(bench.ours, "bench.local"),
    }, standing)  # fmt: skip
    yield standing


def growth(bench: Bench, count: int) -> Iterator[Figures]:
    """Jobs over a hundred times as many finished ones, beside the same over none."""
    figures = Figures(f"jobs over {GROWN * bench.jobs} finished ones", "jobs/s")
    rounds(count, {
        "ours": partial(bench.ours_over, ledger.Ledger(1, GROWN * bench.jobs)),
        "none finished": partial(bench.ours, "bench.local"),
    }, figures)  # fmt: skip
    yield figures


PARTS = {"throughput": throughput, "enqueue": enqueueing, "latency": latency, "poison": poison,
         "growth": growth, "orm": orm, "http": http, "size": size}  # fmt: skip


def main(*, size: int | None, rounds: int, parts: list[str], as_json: bool) -> None:
    bench = Bench(size or 10_000)
    found = [figures for part in parts for figures in PARTS[part](bench, rounds)]
    report(found, as_json=as_json)
