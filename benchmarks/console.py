"""The console over a full ledger: server time of its pages, of a preview, and of a large requeue.

    python manage.py bench console [--size 1000000] [--jobs 10000000] [--rounds 3] [--part lists]

``lists``: the first page of each list, and one far down beside OFFSET on the same rows. ``growth``:
the queries of each page here, to hold beside a run of another size. ``groups``: what sums up all
letters. ``preview``: a filter-wide requeue, to its dry run. ``requeue`` and ``redrive``: see
redrives.py; they change the ledger, so they come last. Times are those of whole requests inside one
process, without a network.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from benchmarks import ledger, redrives
from benchmarks.measure import Figures, report, rounds
from reliability.conf import conf
from reliability.models import DeadLetter, Job, Membership, Receipt, RedriveMember
from reliability.sql import command

LETTERS, LIST_MS, GROUPS_MS, PREVIEW_MS = 1_000_000, 50, 200, 1_000


@dataclass(frozen=True)
class Listed:
    """A list: its route, what it is asked for, and the rows of its page by the same order."""

    route: str
    query: str
    rows: Callable[[], "QuerySet[Any]"]
    by: str

    @property
    def name(self) -> str:
        return f"{self.route}?{self.query}" if self.query else self.route

    def address(self, **more: str) -> str:
        asked = "&".join(filter(None, [self.query, *(f"{k}={v}" for k, v in more.items())]))
        return f"{reverse(f'console:{self.route}')}?{asked}"


def letters(**asked: Any) -> "QuerySet[DeadLetter]":
    rows = DeadLetter.objects.open().filter(tenant=ledger.tenant(), **asked)
    return rows.select_related("source", "job__key").order_by("-buried_at", "-pk")


def jobs(**asked: Any) -> "QuerySet[Job]":
    rows = Job.objects.filter(tenant=ledger.tenant(), **asked)
    return rows.select_related("key", "source").order_by("-pk")


def receipts(**asked: Any) -> "QuerySet[Receipt]":
    rows = Receipt.objects.filter(tenant=ledger.tenant(), **asked)
    return rows.select_related("source", "key", "delivery").order_by("-pk")


RARE = "cause=Error7:%207&kind=stripe.charge.failed"
LISTS = [
    Listed("dead_letters", "", letters, "buried_at"),
    Listed("dead_letters", "source=source-3", partial(letters, source__slug="source-3"), "buried_at"),
    Listed("dead_letters", "kind=bench.outside", partial(letters, kind="bench.outside"), "buried_at"),
    Listed("dead_letters", "outcome=unknown", partial(letters, outcome="unknown"), "buried_at"),
    Listed("dead_letters", "error=Error7", partial(letters, error_type="Error7"), "buried_at"),
    Listed("dead_letters", "cause=Error7:%207", partial(letters, fingerprint="Error7: 7"), "buried_at"),
    Listed("jobs", "", jobs, "id"),
    Listed("jobs", "state=dead", partial(jobs, state="dead"), "id"),
    Listed("jobs", "source=source-3", partial(jobs, source__slug="source-3"), "id"),
    Listed("jobs", "kind=bench.outside", partial(jobs, kind="bench.outside"), "id"),
    Listed("deliveries", "", receipts, "id"),
    Listed("deliveries", "source=source-3", partial(receipts, source__slug="source-3"), "id"),
    Listed("deliveries", "verdict=duplicate", partial(receipts, verdict="duplicate"), "id"),
]  # fmt: skip
NARROW = [
    "dead-letters/?text=period_locked", "dead-letters/?kind=no.such.kind",
    "dead-letters/?error=NoSuchError", "dead-letters/?outcome=suspect", "dead-letters/?rounds=2",
    "dead-letters/?key=evt_1000", "dead-letters/?key_starts=evt_1000",
    "dead-letters/?downstream=ik_1000", "dead-letters/?currency=CHF&amount_min=1",
    "dead-letters/?status=discarded", "dead-letters/?payload=data.object.amount=4200",
    "jobs/?state=ready", "jobs/?state=running", "jobs/?state=discarded", "jobs/?kind=no.such.kind",
    "jobs/?held=paused", "deliveries/?verdict=conflict", "deliveries/?kind=no.such.kind",
    "deliveries/?replays=True", "deliveries/refused/", "redrives/", "audit/", "runs/",
    "statements/", "discrepancies/", "reports/", "sources/", "alerts/",
]  # fmt: skip
"""Lists that find little or nothing: what an index does not know is looked for to the end."""


class Bench:
    """A filled ledger and a signed-in operator."""

    def __init__(self, of: ledger.Ledger) -> None:
        self.ledger = of
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        ledger.fill(self.db, of)
        Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
        call_command("collectstatic", interactive=False, verbosity=0)
        self.client = Client(SERVER_NAME="localhost")
        self.client.force_login(self._operator())

    def _operator(self) -> User:
        user = User.objects.create_user("ola")
        role = Group.objects.get(name="reliability operator")
        Membership.objects.create(tenant=ledger.tenant(), user=user, role=role)
        return user

    def get(self, address: str) -> float:
        """Return the milliseconds of one page. Raises RuntimeError where it is no page."""
        began = time.perf_counter()
        answer = self.client.get(address)
        if answer.status_code != 200:
            raise RuntimeError(f"{address}: {answer.status_code}")
        return 1000 * (time.perf_counter() - began)

    def queries(self, address: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            self.get(address)
        if os.environ.get("BENCH_SLOW"):
            for query in sorted(asked.captured_queries, key=lambda q: -float(q["time"]))[:3]:
                print(f"  {query['time']} {query['sql'][:1500]}", file=sys.stderr)
        return len(asked.captured_queries)


def milliseconds(name: str) -> Figures:
    return Figures(name, "ms", lower_is_better=True)


def timed(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - began)


@contextmanager
def patient() -> Iterator[None]:
    """Let a statement take its time: an OFFSET far down does."""
    command("SET statement_timeout = 0")
    try:
        yield
    finally:
        command("RESET statement_timeout")


def offset(of: Listed, depth: int) -> list[Any]:
    with patient():
        return list(of.rows()[depth : depth + 51])


def lists(bench: Bench, count: int) -> Iterator[Figures]:
    """The first page beside one far down, whose peer is OFFSET: its statement alone, no page."""
    for of in LISTS:
        with patient():
            depth = int(of.rows().count() * ledger.DEEP)
        row = offset(of, depth)[0]
        value = getattr(row, of.by)
        at = value.isoformat() if isinstance(value, datetime) else value
        deep = of.address(after=f"{at}_{row.pk}".replace("+", "%2B"))
        bench.queries(of.address())
        figures = milliseconds(f"page of {of.name}, {depth} rows down")
        rounds(count, {
            "ours": partial(bench.get, deep),
            "first page": partial(bench.get, of.address()),
            "OFFSET": partial(timed, partial(offset, of, depth)),
        }, figures)  # fmt: skip
        yield ceiling(figures, LIST_MS)


def narrow(bench: Bench, count: int) -> Iterator[Figures]:
    """Lists that find little; beside the ceiling."""
    for address in NARROW:
        yield _page(bench, count, f"/{address}", LIST_MS)


def groups(bench: Bench, count: int) -> Iterator[Figures]:
    """What sums up: the causes, the overview, and one letter's page."""
    letter = letters()[0]
    for route, limit, *of in (
        ("causes", GROUPS_MS), ("overview", GROUPS_MS), ("health", LIST_MS),
        ("dead_letter", LIST_MS, letter.public_id),
    ):  # fmt: skip
        yield _page(bench, count, reverse(f"console:{route}", args=of), limit)
    yield _page(bench, count, f"{reverse('console:trace')}?find=evt_1000", LIST_MS)


def growth(bench: Bench, _: int) -> Iterator[Figures]:
    """The number of queries of each page: the same whatever the size."""
    pages = [of.address() for of in LISTS] + [f"/{address}" for address in NARROW]
    for address in [*pages, reverse("console:causes"), reverse("console:overview")]:
        figures = Figures(f"queries of {address}", "queries", lower_is_better=True)
        figures.add("ours", bench.queries(address))
        yield figures


def preview(bench: Bench, count: int) -> Iterator[Figures]:
    """From the click on "all that match" to the dry run, and the drafts dropped afterwards."""
    figures = milliseconds("preview of a filter-wide requeue")

    def once() -> float:
        began = time.perf_counter()
        asked = {"asked": "source=source-3"}
        answer = bench.client.post(reverse("console:freeze"), asked, follow=True)
        if answer.status_code != 200:
            raise RuntimeError(f"freeze: {answer.status_code}")
        took = 1000 * (time.perf_counter() - began)
        print(f"  {RedriveMember.objects.count()} letters", file=sys.stderr)
        bench.db.execute("TRUNCATE reliability_redrive, reliability_redrivemember CASCADE")
        return took

    rounds(count, {"ours": once}, figures)
    yield ceiling(figures, PREVIEW_MS)


def _page(bench: Bench, count: int, address: str, limit_ms: float) -> Figures:
    figures = milliseconds(f"page {address}")
    bench.queries(address)
    rounds(count, {"ours": partial(bench.get, address)}, figures)
    return ceiling(figures, limit_ms)


def ceiling(figures: Figures, limit_ms: float) -> Figures:
    """Put a quiet machine's ceiling beside the figure, and say where it is passed."""
    figures.limit = [float(limit_ms)]
    if statistics.median(figures.ours) > limit_ms:
        print(f"OVER {limit_ms} ms: {figures.name}", file=sys.stderr)
    return figures


PARTS = {
    "lists": lists, "narrow": narrow, "groups": groups, "growth": growth, "preview": preview,
    "requeue": redrives.requeue, "redrive": redrives.redrive,
}  # fmt: skip


def main(
    *, size: int | None, rounds: int, parts: list[str], as_json: bool, jobs: int | None = None
) -> None:
    letters = size or LETTERS
    ratio = max(1, (jobs or 2 * letters) // letters)
    bench = Bench(ledger.Ledger(letters, ratio))
    print(f"letters of one redrive: {conf().redrive_letters_max}", file=sys.stderr)
    found = [figures for part in parts for figures in PARTS[part](bench, rounds)]
    report(found, as_json=as_json)
