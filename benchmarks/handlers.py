"""What handlers of other sorts reach: by the ORM, by HTTP; and what a finished event leaves behind."""

import os
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from benchmarks.measure import ADDRESSES, OURS, Figures, processes, rounds
from benchmarks.peers.slow_downstream import SECONDS
from reliability.embedded.place import free_port

if TYPE_CHECKING:
    from benchmarks.jobs import Bench

CONCURRENCY = 8
"""Two worker processes of four threads: few_threads.py."""
BYTES = """
SELECT sum(pg_total_relation_size(oid)) - (SELECT sum(length(raw)) FROM reliability_body)
FROM pg_class WHERE relkind = 'r' AND relname = ANY(%s)
"""
WRITTEN = [
    f"reliability_{name}" for name in ("processedkey", "body", "receipt", "job", "attempt")
]


def orm(bench: "Bench", count: int) -> Iterator[Figures]:
    """Handlers that insert by ``get_or_create``, beside Celery with its state in the ORM too."""
    figures = Figures("jobs, effect by the ORM", "jobs/s")
    rounds(count, {
        "ours": partial(bench.ours, "bench.orm"),
        "celery, same guarantee by the ORM": partial(
            bench.celery, "same_guarantee", import_module("benchmarks.peers.celery_orm")
        ),
    }, figures)  # fmt: skip
    yield figures


def http(bench: "Bench", count: int) -> Iterator[Figures]:
    """Effects that are a request of 20 ms, beside what so many threads could do at best."""
    figures = Figures(f"jobs, a request of 20 ms in {CONCURRENCY} threads", "jobs/s")
    figures.limit = [CONCURRENCY / SECONDS] * count
    rounds(count, {"ours": partial(_asked, bench)}, figures)
    yield figures


def _asked(bench: "Bench") -> float:
    bench.clear()
    bench.enqueue("bench.http", bench.jobs)
    port = free_port(0)
    settings = {"DJANGO_SETTINGS_MODULE": "benchmarks.few_threads", "DOWNSTREAM": str(port)}
    environment = {k: v for k, v in os.environ.items() if k not in ADDRESSES}
    downstream = [["-m", "benchmarks.peers.slow_downstream", str(port)]]
    with processes(downstream, os.environ), processes(OURS, environment | settings):
        return bench.done_rate()


def size(bench: "Bench", _: int) -> Iterator[Figures]:
    """What is stored of a finished event, indexes and all, without its body."""
    figures = Figures(
        "bytes of a finished event without its body", "bytes", lower_is_better=True
    )
    figures.limit = [3_000.0]  # the ceiling the product sets itself
    bench.ours("bench.local")
    stored = bench.db.execute(BYTES, [WRITTEN]).fetchone()[0]
    figures.add("ours", float(stored) / bench.jobs)
    yield figures
