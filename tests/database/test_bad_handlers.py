"""Handlers that misbehave: the job gets a verdict, the worker lives, its neighbours are untouched."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from reliability.handlers import Event, ProviderHeader
from reliability.models import Job
from reliability.policy import Backoff
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
TWICE = Backoff(first=HOUR, cap=HOUR, attempts=2)


class Leave(BaseException):
    """Not even an Exception."""


class Mute(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")


class Treacherous(dict[str, int]):
    def items(self) -> Any:
        raise LookupError("no items")


def effect(event: Event) -> None:
    Group.objects.create(name=event.key)


def leave(_event: Event) -> None:
    raise Leave


def exits(_event: Event) -> None:
    raise SystemExit(3)


def interrupted(_event: Event) -> None:
    raise KeyboardInterrupt


def mute(_event: Event) -> None:
    raise Mute


def curses(_event: Event) -> None:
    raise ValueError("nul \x00, a lone surrogate \ud800, " + "and more " * 10_000)


def recurses(event: Event) -> None:
    recurses(event)


def closes_the_connection(_event: Event) -> None:
    connection.close()


def leaks_a_transaction(event: Event) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=f"{event.key} leaked")


def leaks_two(_event: Event) -> None:
    transaction.atomic().__enter__()
    transaction.atomic().__enter__()


def breaks_the_transaction(_event: Event) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


def swallows_a_broken_transaction(event: Event) -> None:
    with suppress(Exception):
        breaks_the_transaction(event)


def marks_it_for_rollback(event: Event) -> None:
    Group.objects.create(name=f"{event.key} half")
    transaction.set_rollback(True)


def returns_a_traitor(_event: Event) -> Any:
    return Treacherous(a=1)


FAILING: list[Callable[[Event], Any]] = [
    leave, exits, interrupted, mute, curses, recurses, breaks_the_transaction, returns_a_traitor,
]  # fmt: skip
FAILING_LOCALLY: list[Callable[[Event], Any]] = [
    closes_the_connection, leaks_a_transaction, leaks_two, swallows_a_broken_transaction,
    marks_it_for_rollback,
]  # fmt: skip


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.local("good", effect),
        world.kind("good outside", effect, sink=ProviderHeader(), policy=TWICE),
    ):
        yield


def states(kind: str) -> set[str]:
    return set(Job.objects.filter(kind=kind).values_list("state", flat=True))


@pytest.mark.parametrize("handle", FAILING + FAILING_LOCALLY, ids=lambda f: f.__name__)
def test_a_bad_local_handler_fails_and_costs_its_batch_nothing(
    handle: Callable[[Event], Any],
) -> None:
    with world.local("bad", handle, policy=TWICE):
        world.job("good", "before")
        bad = world.job("bad", "bad")
        world.job("good", "after")
        drain("local")
        world.job("good", "later")
        drain("local")
    bad.refresh_from_db()
    assert bad.state == "ready"
    assert [a.outcome for a in bad.attempts.all()] == ["failed"]
    assert states("good") == {"done"}
    assert set(Group.objects.filter(name__in=("before", "after", "later")).values_list(
        "name", flat=True)) == {"before", "after", "later"}  # fmt: skip
    assert not Group.objects.filter(name__startswith="bad").exists()
    assert connection.get_autocommit()


@pytest.mark.parametrize("handle", FAILING, ids=lambda f: f.__name__)
def test_a_bad_outside_handler_fails_and_costs_its_neighbours_nothing(
    handle: Callable[[Event], Any],
) -> None:
    with world.kind("bad", handle, sink=ProviderHeader(), policy=TWICE):
        bad = world.job("bad", "bad")
        for n in range(3):
            world.job("good outside", f"good-{n}")
        drain("outside")
    bad.refresh_from_db()
    assert bad.state == "ready"
    assert [a.outcome for a in bad.attempts.all()] == ["failed"]
    assert states("good outside") == {"done"}


@pytest.mark.parametrize(
    "handle", [leaks_a_transaction, leaks_two, closes_the_connection], ids=lambda f: f.__name__
)
def test_an_outside_handler_that_leaks_gets_its_verdict_committed_all_the_same(
    handle: Callable[[Event], Any],
) -> None:
    with world.kind("bad", handle, sink=ProviderHeader(), policy=TWICE):
        bad = world.job("bad", "bad")
        for n in range(3):
            world.job("good outside", f"good-{n}")
        drain("outside")
    bad.refresh_from_db()
    assert (bad.state, states("good outside")) == ("done", {"done"})


def circular() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (object(), {"not kept": "a object is not JSON"}),
        ({1, 2}, {"not kept": "a set is not JSON"}),
        (b"bytes", {"not kept": "a bytes is not JSON"}),
        (float("nan"), {"not kept": "a float is not JSON"}),
        (circular(), {"not kept": "a list is not JSON"}),
        ("nul \x00", {"not kept": "too large, or text that cannot be stored"}),
        ("surrogate \ud800", {"not kept": "too large, or text that cannot be stored"}),
        ("x" * 70_000, {"not kept": "too large, or text that cannot be stored"}),
        (["an escaped nul \\\x00"], {"not kept": "too large, or text that cannot be stored"}),
        ({1: (2, 3)}, {"1": [2, 3]}),
        ("paid \N{PARTY POPPER}, 완료", "paid \N{PARTY POPPER}, 완료"),
        (r"C:\udata\u0000 is a path", r"C:\udata\u0000 is a path"),
    ],
)
def test_a_result_that_cannot_be_stored_does_not_cost_the_effect(
    result: Any, kept: Any
) -> None:
    def handle(event: Event) -> Any:
        effect(event)
        return result

    with world.local("odd", handle, policy=TWICE):
        job = world.job("odd", "odd")
        world.job("good", "good")
        drain("local")
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", kept)
    assert states("good") == {"done"}
    assert Group.objects.filter(name="odd").count() == 1


def test_a_handler_that_holds_the_interpreter_past_its_limit_fails_when_it_lets_go() -> None:
    def holds(_event: Event) -> None:
        _ = 7**1_500_000  # one step of the interpreter: no signal is seen within

    with world.local("holds", holds, policy=TWICE, limit=timedelta(milliseconds=5)):
        bad = world.job("holds", "bad")
        world.job("good", "good")
        drain("local")
    assert bad.attempts.get().error_type == "JobTimeout"
    assert states("good") == {"done"}
