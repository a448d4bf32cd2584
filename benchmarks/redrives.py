"""A large redrive: how fast its letters are requeued, and what live work feels of it meanwhile."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from benchmarks import ledger
from benchmarks.jobs import OURS, environment
from benchmarks.measure import Figures, processes, rounds, wait_until
from benchmarks.peers import effect
from reliability.claim.enqueue import enqueue
from reliability.conf import conf
from reliability.models import DeadLetter, Redrive
from reliability.work import dead_letters
from reliability.work.dead_letters import Act, Seen
from reliability.work.redrive import Pace, Plan, advance, counts, freeze, start

SAMPLE = 200
LIVE_PER_SECOND, LIVE_SECONDS = 100, 10
FAST = 100.0
CELERY = ("-m", "celery", "-A", "reliability.project")
TICKS = [*CELERY, "worker", "--queues=ticks", "--pool=solo", "--loglevel=ERROR"]
BEAT = [*CELERY, "beat", "--pidfile=", "--loglevel=ERROR"]


def act() -> Act:
    return Act(ledger.tenant(), "ola", reason="fixed")


def started(*, letters: int, rate: float) -> Redrive:
    """Freeze and start a redrive of so many letters of a kind that runs here."""
    chosen = DeadLetter.objects.open().filter(tenant=ledger.tenant(), kind="bench.local")
    some = DeadLetter.objects.filter(
        pk__in=list(chosen.order_by("pk").values_list("pk", flat=True)[:letters])
    )
    redrive = freeze(some, act(), asked="kind=bench.local", now=timezone.now())
    pace = Pace(how="steady", rate=rate, stop_percent=20, stop_after=10)
    glass = "measured, nothing leaves this machine"
    return start(redrive, act(), Plan(pace=pace, break_glass=glass))


@contextmanager
def unpaced(rate: float) -> Iterator[None]:
    """Let a redrive go as fast as its statements do: the pace is not what is measured."""
    before = conf().redrive_rate_max
    conf().__dict__["redrive_rate_max"] = rate
    try:
        yield
    finally:
        conf().__dict__["redrive_rate_max"] = before


def requeue(bench: Any, count: int) -> Iterator[Figures]:
    """Letters a second: one redrive from freeze to the last step, beside one verb per letter."""
    figures = Figures("letters requeued by a redrive", "letters/s")
    each = min(100_000, bench.ledger.letters // (2 * count) - SAMPLE)

    def in_steps() -> float:
        began, now = time.perf_counter(), timezone.now()
        redrive = started(letters=each, rate=1e6)
        left = each
        while left:
            now += timedelta(seconds=10)
            advance(now)
            left = counts(redrive).get("pending", 0)
        took = time.perf_counter() - began
        Redrive.objects.filter(pk=redrive.pk).update(
            state="cancelled", ended_at=timezone.now()
        )
        return each / took

    def row_by_row() -> float:
        open_ = DeadLetter.objects.open().filter(kind="bench.local").select_related("job")
        sample = list(open_.order_by("-pk")[:SAMPLE])
        began = time.perf_counter()
        for letter in sample:
            dead_letters.requeue([Seen(letter.pk, letter.job.version)], act())
        return SAMPLE / (time.perf_counter() - began)

    with unpaced(1e6):
        rounds(count, {"ours": in_steps, "row by row": row_by_row}, figures)
    yield figures


def redrive(bench: Any, count: int) -> Iterator[Figures]:
    """The p99 of live jobs, enqueue to done at 100 a second: alone, and beside redrives.

    One goes at the pace the console offers, one at as many letters a second as there is live work.
    """
    figures = Figures("live p99 beside a redrive", "ms", lower_is_better=True)
    fast = Figures(f"live p99 beside a redrive of {FAST:g}/s", "ms", lower_is_better=True)

    def beside(rate: float) -> float:
        some = int(rate * LIVE_SECONDS * 4)
        going = started(letters=some, rate=rate)
        wait_until(lambda: bool(counts(going).get("succeeded")), seconds=30)
        p99 = live(bench)
        left = counts(going).get("pending", 0)
        Redrive.objects.filter(pk=going.pk).update(state="cancelled", ended_at=timezone.now())
        if not 0 < left < some:
            raise RuntimeError(
                f"the redrive did not go on all the while: {left} of {some} left"
            )
        return p99

    bench.db.execute(effect.TABLE)
    bench.db.execute(
        "UPDATE reliability_job SET state = 'done', ended_at = now() WHERE state = 'ready'"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        processes([*OURS, TICKS, [*BEAT, f"--schedule={folder}/beat"]], environment()),
    ):
        time.sleep(5)
        live(bench, seconds=3)
        for _ in range(count):
            alone = live(bench)
            figures.add("alone", alone)
            fast.add("alone", alone)
            figures.add("ours", beside(conf().redrive_rate))
            fast.add("ours", beside(FAST))
    yield figures
    yield fast


def live(bench: Any, *, seconds: int = LIVE_SECONDS) -> float:
    """Return the p99 in ms of ``seconds`` of paced live jobs, by their effects."""
    prefix, sent = f"live-{uuid4().hex[:8]}-", {}
    begin = time.time()
    for n in range(seconds * LIVE_PER_SECOND):
        time.sleep(max(0.0, begin + n / LIVE_PER_SECOND - time.time()))
        key = f"{prefix}{n}"
        sent[key] = time.time()
        enqueue("bench.local", key=key, tenant=ledger.tenant(), payload={})
    asked = "SELECT key, extract(epoch FROM at) FROM effect WHERE key LIKE %s"

    def rows() -> list[Any]:
        return list(bench.db.execute(asked, [f"{prefix}%"]).fetchall())

    wait_until(lambda: len(rows()) >= len(sent), seconds=60)
    waits = sorted(1000 * (float(at) - sent[key]) for key, at in rows())
    return waits[int(len(waits) * 0.99)]
