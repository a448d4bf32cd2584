"""A redrive of 100 000 letters: killed half way, raced by people and other ticks, and fast enough."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.models import AuditEntry, DeadLetter, Job, Redrive
from reliability.work import dead_letters
from reliability.work.dead_letters import Act, Seen
from reliability.work.redrive import Pace, Plan, advance, counts, freeze, start
from tests.database import many, world

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS = 100_000


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local("book", lambda event: None):
        yield


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_rate_max", 1e6)
    monkeypatch.setitem(conf().__dict__, "redrive_alone_letters", LETTERS)


def by(name: str = "ola") -> Act:
    return Act(world.tenant(), name, reason="fixed")


def started(letters: int) -> Redrive:
    many.dead_letters(world.source(), letters, queue="local")
    world.query("ANALYZE")
    redrive = freeze(DeadLetter.objects.all(), by(), asked="kind=book", now=timezone.now())
    pace = Pace(how="steady", rate=100_000.0, stop_percent=20, stop_after=10)
    return start(redrive, by(), Plan(pace=pace))


def ticks(number: int) -> Iterator[datetime]:
    now = timezone.now()
    for n in range(1, number + 1):
        yield now + timedelta(seconds=10 * n)


def all_at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call each in a thread of its own, all released together; return results or errors."""
    gate, results = threading.Barrier(len(calls)), {}

    def one(n: int, call: Callable[[], Any]) -> None:
        gate.wait()
        try:
            results[n] = call()
        except Exception as error:  # noqa: BLE001 - told to the test
            results[n] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[n] for n in range(len(calls))]


def kill_after_the_work(monkeypatch: pytest.MonkeyPatch, *, kills: int) -> list[int]:
    """End the session of a tick when its letters are requeued and nothing is committed yet."""
    real = sql.rows
    killed: list[int] = []

    def rows(name: str, into: Any, /, **params: Any) -> Any:
        found = real(name, into, **params)
        if name == "requeue_members" and len(killed) < kills:
            [(pid,)] = world.query("SELECT pg_backend_pid()")
            killed.append(pid)
            all_at_once(lambda: world.query("SELECT pg_terminate_backend(%s)", pid))
        return found

    monkeypatch.setattr(sql, "rows", rows)
    return killed


@pytest.mark.parametrize("letters", [5_000, pytest.param(LETTERS, marks=pytest.mark.proof)])
def test_a_redrive_killed_half_way_goes_on_and_requeues_none_twice(
    monkeypatch: pytest.MonkeyPatch, letters: int
) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_batch_max", letters // 5)
    redrive = started(letters)
    clock = ticks(20)
    advance(next(clock))
    advance(next(clock))
    half = counts(redrive)
    killed = kill_after_the_work(monkeypatch, kills=2)
    for _ in range(2):
        with pytest.raises(DatabaseError):
            advance(next(clock))
        connection.close()
        assert counts(redrive) == half, "what a killed tick did is undone"
    assert len(killed) == 2
    while advance(next(clock)) and counts(redrive).get("pending"):
        pass
    assert counts(redrive) == {"running": letters}
    rounds = Counter(Job.objects.values_list("round", "version", "state"))
    assert rounds == {(2, 2, "ready"): letters}
    assert DeadLetter.objects.filter(status="requeued").count() == letters


def test_requeueing_in_batches_is_ten_times_as_fast_as_row_by_row() -> None:
    redrive = started(10_000)
    sample = list(DeadLetter.objects.select_related("job").order_by("-pk")[:100])
    begun = time.perf_counter()
    for letter in sample:
        seen = [Seen(letter.pk, letter.job.version)]
        assert dead_letters.requeue(seen, by()).letter_ids
    by_row = (time.perf_counter() - begun) / len(sample)
    begun = time.perf_counter()
    advance(timezone.now() + timedelta(seconds=10))
    in_batches = (time.perf_counter() - begun) / counts(redrive)["running"]
    assert by_row / in_batches >= 10


def test_two_ticks_at_once_requeue_each_letter_once() -> None:
    redrive = started(500)
    now = timezone.now() + timedelta(seconds=10)
    told = all_at_once(*[lambda: advance(now)] * 4)
    assert not [one for one in told if isinstance(one, Exception)]
    advance(now + timedelta(seconds=10))
    assert counts(redrive) == {"running": 500}
    assert set(Job.objects.values_list("round", flat=True)) == {2}


def test_a_tick_passes_over_a_redrive_that_another_tick_is_moving() -> None:
    redrive = started(5)
    later = timezone.now() + timedelta(seconds=10)
    with transaction.atomic():
        Redrive.objects.select_for_update().get(pk=redrive.pk)
        (told,) = all_at_once(lambda: advance(later))
    assert told == []
    assert counts(redrive) == {"pending": 5}


def test_a_person_and_the_redrive_never_both_requeue_a_letter() -> None:
    redrive = started(200)
    letters = list(DeadLetter.objects.select_related("job").order_by("pk"))
    seen = [Seen(letter.pk, letter.job.version) for letter in letters]
    now = timezone.now() + timedelta(seconds=10)
    _, moved = all_at_once(
        lambda: advance(now), lambda: dead_letters.requeue(seen, by("second"))
    )
    advance(now + timedelta(seconds=10))
    told = counts(redrive)
    assert told.get("running", 0) + len(moved.letter_ids) == 200
    assert told.get("skipped", 0) == len(moved.letter_ids)
    assert set(Job.objects.values_list("round", flat=True)) == {2}


def test_of_two_people_who_start_at_once_one_does_and_the_other_is_told() -> None:
    many.dead_letters(world.source(), 3, queue="local")
    redrive = freeze(DeadLetter.objects.all(), by(), asked="kind=book", now=timezone.now())
    plan = Plan(pace=Pace(how="steady", rate=1.0, stop_percent=20, stop_after=10))

    def start_as(name: str) -> Callable[[], Any]:
        return lambda: start(Redrive.objects.get(pk=redrive.pk), by(name), plan)

    told = all_at_once(start_as("ola"), start_as("mia"))
    refused = [str(one) for one in told if isinstance(one, Exception)]
    assert refused == [f"Nothing was changed: {redrive} is running."]
    assert AuditEntry.objects.filter(act="start redrive").count() == 1


def test_a_letter_in_two_redrives_is_requeued_by_one_of_them() -> None:
    first = started(50)
    second = freeze(DeadLetter.objects.all(), by(), asked="kind=book", now=timezone.now())
    second.members.update(verdict="will run", outcome="pending")
    Redrive.objects.filter(pk=second.pk).update(
        state="running", pace="steady", rate=1000.0, reason="again",
        started_at=timezone.now(), paced_at=timezone.now(),
    )  # fmt: skip
    now = timezone.now() + timedelta(seconds=10)
    all_at_once(lambda: advance(now), lambda: advance(now))
    advance(now + timedelta(seconds=10))
    done = [counts(one).get("running", 0) for one in (first, second)]
    assert sorted(done) == [0, 50]
    assert set(Job.objects.values_list("round", flat=True)) == {2}
