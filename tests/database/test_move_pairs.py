"""Every two moves that could meet at one job, in both orders, on two connections: one wins.

The first move has happened and is not committed when the second begins.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product

import pytest
from django.db import connection, transaction
from django.utils import timezone

from reliability import handlers
from reliability.errors import PermanentError
from reliability.handlers import ProviderHeader
from reliability.models import Job
from reliability.policy import Backoff, RunOnce
from reliability.work.dead_letters import Act, Seen, discard, requeue, resolve
from reliability.work.lease import Leased, take, take_alone
from reliability.work.rescue import expire, lost, take_back
from reliability.work.settle import Done, Failed, fail, finish, finish_late, intend, release
from tests.database import world

pytestmark = pytest.mark.django_db(transaction=True)

SOON = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=3)


@dataclass(frozen=True)
class Meeting:
    """One job that two want to move: the lease one has, the version a person saw."""

    job: Job
    leased: Leased

    def done(self) -> Done:
        return Done(self.leased, {"by": "worker"}, timezone.now())

    def failed(self, error: Exception) -> Failed:
        kind = handlers.find(self.job.kind)
        assert kind is not None
        return Failed(self.leased, kind, error, timezone.now())

    def seen(self) -> list[Seen]:
        return [Seen(self.job.letters.get().pk, self.job.version)]


Move = Callable[[Meeting], bool]


def sweep(_meeting: Meeting) -> bool:
    with transaction.atomic():
        rescue = take_back(lost(10))
    return bool(rescue.rescued + rescue.buried)


def person() -> Act:
    return Act(world.tenant(), "ann", reason="seen to")


RUNNING: dict[str, tuple[Move, str]] = {
    "finish": (lambda m: bool(finish([m.done()])), "done"),
    "fail": (lambda m: fail(m.failed(ValueError("no"))) is not None, "ready"),
    "bury": (lambda m: fail(m.failed(PermanentError("no"))) is not None, "dead"),
    "release": (lambda m: release(m.leased), "ready"),
    "sweep": (sweep, "ready"),
}
LOST: dict[str, tuple[Move, str]] = {
    "start again": (lambda m: take_alone("outside") is not None, "running"),
    "late result": (lambda m: finish_late(m.done()), "done"),
    "expire": (lambda m: bool(expire(10)), "dead"),
}
UNKNOWN: dict[str, tuple[Move, str]] = {
    "requeue": (lambda m: bool(requeue(m.seen(), person()).letter_ids), "ready"),
    "discard": (lambda m: bool(discard(m.seen(), person()).letter_ids), "discarded"),
    "resolve": (lambda m: bool(resolve(m.seen(), person()).letter_ids), "resolved"),
    "late result": (lambda m: finish_late(m.done()), "done"),
}


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.kind("repeatable", lambda event: None, sink=ProviderHeader(), policy=SOON),
        world.kind("once", lambda event: None, policy=RunOnce()),
    ):
        yield


def started(kind: str, key: str) -> Meeting:
    job = world.job(kind, key)
    [leased] = take("outside", limit=1)
    world.end_lease(job)
    return Meeting(Job.objects.get(pk=job.pk), leased)


def lost_again(kind: str, key: str) -> Meeting:
    meeting = started(kind, key)
    sweep(meeting)
    return Meeting(Job.objects.get(pk=meeting.job.pk), meeting.leased)


def unknown(kind: str, key: str) -> Meeting:
    job = world.job(kind, key)
    [leased] = take("outside", limit=1)
    assert intend(leased)
    world.end_lease(job)
    sweep(Meeting(job, leased))
    return Meeting(Job.objects.get(pk=job.pk), leased)


def meet(meeting: Meeting, first: Move, second: Move) -> tuple[bool, bool]:
    """Make the first move, begin the second beside it, commit the first; tell who won."""
    answers: list[bool] = []

    def beside() -> None:
        try:
            answers.append(second(meeting))
        finally:
            connection.close()

    other = threading.Thread(target=beside)
    with transaction.atomic():
        won = first(meeting)
        other.start()
        other.join(0.05)  # it waits for the row, or has passed over it
    other.join(10)
    return won, answers[0]


def check(
    moves: dict[str, tuple[Move, str]], made: Callable[[str, str], Meeting], kind: str
) -> None:
    for one, other in product(moves, moves):
        meeting = made(kind, f"{one}, {other}")
        if moves is LOST:
            Job.objects.filter(pk=meeting.job.pk).update(**window(one, other))
        assert meet(meeting, moves[one][0], moves[other][0]) == (True, False), (one, other)
        job = Job.objects.get(pk=meeting.job.pk)
        assert job.state == moves[one][1], (one, other)
        assert job.attempts.exclude(outcome="late").count() <= 1
        assert job.letters.count() <= 1
        put_away(job)


def window(one: str, other: str) -> dict[str, object]:
    """Close the window where a move needs that; starting again needs it open."""
    closed = "expire" in {one, other} and one != "start again"
    return {"not_after": timezone.now() - timedelta(seconds=1) if closed else None}


def put_away(job: Job) -> None:
    """Hold what is left, so that the next pair meets its own job only."""
    Job.objects.filter(pk=job.pk, state="ready").update(held="paused")
    Job.objects.filter(pk=job.pk, state="running").update(
        lease_expires_at=timezone.now() + timedelta(days=1)
    )


def test_of_two_who_end_one_start_the_first_wins() -> None:
    check(RUNNING, started, "repeatable")


def test_of_two_who_go_on_with_a_lost_job_the_first_wins() -> None:
    check(LOST, lost_again, "repeatable")


def test_of_two_who_decide_on_an_unknown_letter_the_first_wins() -> None:
    check(UNKNOWN, unknown, "once")


def test_an_intent_beside_the_end_of_its_start_is_refused() -> None:
    for name in ("finish", "fail", "bury", "release"):
        job = world.job("once", name)
        [leased] = take("outside", limit=1)
        meeting = Meeting(job, leased)
        assert meet(meeting, RUNNING[name][0], lambda m: intend(m.leased)) == (True, False)
        put_away(Job.objects.get(pk=job.pk))


def test_two_starts_of_one_job_are_one() -> None:
    meeting = started("repeatable", "another")
    put_away(meeting.job)
    world.job("repeatable", "this")

    def start(_meeting: Meeting) -> bool:
        return bool(take("outside", limit=1))

    assert meet(meeting, start, start) == (True, False)
