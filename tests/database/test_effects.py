"""The effect ledger: what a kill between mark and effect leaves behind, before and after."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from reliability.errors import NotDeclared, PermanentError, RetryLater
from reliability.handlers import DedupeWindow, Event, ProviderHeader
from reliability.models import Effect, Job
from reliability.policy import Backoff
from reliability.sweep import sweep
from reliability.work.batch import prepare
from reliability.work.dead_letters import Act, Seen, requeue
from reliability.work.effects import Effects
from reliability.work.lease import take, take_alone
from reliability.work.outside import run_outside_one
from reliability.work.settle import Done, finish_late
from tests.database import world

pytestmark = pytest.mark.django_db

DAYS = timedelta(days=2)
SOON = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=3)
POINTS = ("before the mark", "before the request", "after the request", "after the answer")


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs, no verdict is written."""


@dataclass
class Downstream:
    """A provider that rejects nothing: it counts what it was asked, by key."""

    asked: Counter[str] = field(default_factory=Counter)
    kill_at: str = ""
    says: Exception | None = None

    def handle(self, event: Event) -> Any:
        self.reach("before the mark")
        answer = event.once("pay", self.pay)
        self.reach("after the answer")
        return answer

    def pay(self, key: str) -> dict[str, Any]:
        self.reach("before the request")
        self.asked[key] += 1
        self.reach("after the request")
        if self.says:
            raise self.says
        return {"id": f"tr_{len(self.asked)}"}

    def reach(self, point: str) -> None:
        if point == self.kill_at:
            self.kill_at = ""
            raise Killed


@pytest.fixture
def downstream() -> Downstream:
    return Downstream()


@pytest.fixture(autouse=True)
def kinds(downstream: Downstream) -> Iterator[None]:
    before = DedupeWindow(window=DAYS, record="before")
    after = DedupeWindow(window=DAYS, record="after")
    with ExitStack() as stack:
        for made in (
            world.kind("before", downstream.handle, sink=before, policy=SOON),
            world.kind("after", downstream.handle, sink=after, policy=SOON),
        ):
            stack.enter_context(made)
        yield


def killed(job: Job) -> None:
    """Start a job and lose its worker at the downstream's kill point; let the sweep find it."""
    leased = take("outside", limit=1)
    [ready] = prepare(leased)
    effects = Effects(ready.job, ready.kind)
    assert effects.begin()
    with pytest.raises(Killed):
        ready.kind.handle(replace(ready.event, start=effects))
    world.end_lease(job)
    sweep("command")
    job.refresh_from_db()


def retry(job: Job) -> None:
    if alone := take_alone("outside"):
        [ready] = prepare([alone])
        run_outside_one(ready)
    job.refresh_from_db()


@pytest.mark.parametrize("point", POINTS)
def test_50_kills_of_record_before_never_ask_twice_and_are_unknown_unless_confirmed(
    point: str, downstream: Downstream
) -> None:
    for n in range(13):
        job = world.job("before", f"{point} {n}")
        downstream.kill_at = point
        killed(job)
        retry(job)
        confirmed = point == "after the answer"
        assert job.state == ("done" if confirmed else "dead")
        if not confirmed:
            assert job.letters.get().outcome == "unknown"
        assert job.result == ({"id": f"tr_{n + 1}"} if confirmed else None)
    requests = 13 if point.startswith("after") else 0
    assert downstream.asked.total() == requests
    assert set(downstream.asked.values()) <= {1}


@pytest.mark.parametrize("point", POINTS)
def test_50_kills_of_record_after_ask_once_or_twice_under_one_key_and_never_not_at_all(
    point: str, downstream: Downstream
) -> None:
    for n in range(13):
        job = world.job("after", f"{point} {n}")
        downstream.kill_at = point
        killed(job)
        assert job.state == "ready"
        retry(job)
        assert job.state == "done"
    assert len(downstream.asked) == 13
    assert set(downstream.asked.values()) == {2 if point == "after the request" else 1}


def test_a_retry_is_answered_from_the_ledger_with_the_first_answer(
    downstream: Downstream,
) -> None:
    answers: list[Any] = []

    def handle(event: Event) -> None:
        answers.append(event.once("pay", downstream.pay))
        if len(answers) < 3:
            raise ValueError("something later failed")

    with world.kind(
        "steps", handle, sink=DedupeWindow(window=DAYS, record="before"), policy=SOON
    ):
        job = world.job("steps")
        for _ in range(3):
            world.make_due(job)
            world.work_outside()
        job.refresh_from_db()
    assert job.state == "done"
    assert answers == [{"id": "tr_1"}] * 3
    assert downstream.asked.total() == 1


def test_two_effects_of_one_job_have_two_keys_and_are_marked_apart(
    downstream: Downstream,
) -> None:
    def handle(event: Event) -> None:
        event.once("pay", downstream.pay)
        event.once("mail", downstream.pay)

    with world.kind(
        "two", handle, sink=DedupeWindow(window=DAYS, record="after"), policy=SOON
    ):
        job = world.job("two", "k")
        world.work_outside()
    marks = {mark.name: mark.downstream_key for mark in Effect.objects.filter(job=job)}
    assert set(marks) == {"pay", "mail"}
    assert set(marks.values()) == set(downstream.asked)
    assert len(downstream.asked) == 2


@pytest.mark.parametrize(
    "says", [PermanentError("declined"), RetryLater(timedelta(seconds=1))]
)
def test_an_effect_that_says_nothing_happened_leaves_no_mark_and_no_doubt(
    says: Exception, downstream: Downstream
) -> None:
    downstream.says = says
    job = world.job("before")
    world.work_outside()
    job.refresh_from_db()
    assert not Effect.objects.exists()
    if isinstance(says, PermanentError):
        assert job.letters.get().outcome == "failed"
        return
    downstream.says = None
    world.make_due(job)
    world.work_outside()
    job.refresh_from_db()
    assert (job.state, job.starts) == ("done", 2)


def test_an_effect_marked_before_that_fails_without_a_word_is_unknown(
    downstream: Downstream,
) -> None:
    downstream.says = TimeoutError("no answer")
    job = world.job("before")
    world.work_outside()
    job.refresh_from_db()
    assert (job.state, job.letters.get().outcome) == ("dead", "unknown")
    assert job.letters.get().error_type == "TimeoutError"


def test_a_person_who_requeues_an_unknown_letter_has_the_effect_begun_again(
    downstream: Downstream,
) -> None:
    downstream.says = TimeoutError("no answer")
    job = world.job("before")
    world.work_outside()
    job.refresh_from_db()
    downstream.says = None
    moved = requeue([Seen(job.letters.get().pk, job.version)], Act(world.tenant(), "ann"))
    assert moved.letter_ids
    world.make_due(job)
    world.work_outside()
    job.refresh_from_db()
    assert job.state == "done"
    assert set(downstream.asked.values()) == {2}


def test_a_late_result_is_refused_once_a_person_asked_for_another_round() -> None:
    job = world.job("before")
    [ready] = prepare(take("outside", limit=1))
    Effects(ready.job, ready.kind).begin()
    world.end_lease(job)
    sweep("command")
    job.refresh_from_db()
    requeue([Seen(job.letters.get().pk, job.version)], Act(world.tenant(), "ann"))
    assert not finish_late(Done(ready.job, {"id": "tr_1"}, timezone.now()))
    assert Job.objects.get(pk=job.pk).state == "ready"


def test_a_kind_that_marks_no_single_effect_is_marked_as_a_whole_before_it_starts() -> None:
    def handle(event: Event) -> None:
        raise TimeoutError("no answer")

    with world.kind(
        "whole", handle, sink=DedupeWindow(window=DAYS, record="before"), policy=SOON
    ):
        failed, lost = world.job("whole", "failed"), world.job("whole", "lost")
        world.work_outside()
        [failed_letter] = failed.letters.all()
        assert failed_letter.outcome == "unknown"
        assert lost.letters.get().outcome == "unknown"


def test_a_stale_worker_begins_no_effect(downstream: Downstream) -> None:
    for name in ("before", "after"):
        job = world.job(name)
        [ready] = prepare(take("outside", limit=1))
        stale = Effects(ready.job, ready.kind)
        world.end_lease(job)
        sweep("command")
        event = replace(ready.event, start=stale)
        with pytest.raises(Exception, match="taken over"):
            event.once("pay", downstream.pay)
    assert not downstream.asked


def test_a_mark_inside_a_transaction_is_refused(downstream: Downstream) -> None:
    def handle(event: Event) -> None:
        with transaction.atomic():
            event.once("pay", downstream.pay)

    with world.kind("in", handle, sink=DedupeWindow(window=DAYS, record="after"), policy=SOON):
        job = world.job("in")
        world.work_outside()
        assert job.letters.get().error_type == "NotDeclared"
    assert not downstream.asked


def test_once_is_refused_where_the_kind_has_no_ledger(downstream: Downstream) -> None:
    with world.kind("header", downstream.handle, sink=ProviderHeader(), policy=SOON):
        job = world.job("header")
        world.work_outside()
        assert job.letters.get().error_type == "NotDeclared"


def test_once_is_refused_outside_of_a_start(downstream: Downstream) -> None:
    world.job("after")
    [ready] = prepare(take("outside", limit=1))
    with pytest.raises(NotDeclared, match="while it is worked"):
        ready.event.once("pay", downstream.pay)


def test_an_answer_that_is_no_json_is_not_kept_but_the_effect_is(
    downstream: Downstream,
) -> None:
    got: list[Any] = []

    def handle(event: Event) -> None:
        got.append(event.once("pay", lambda key: object()))

    with world.kind(
        "odd", handle, sink=DedupeWindow(window=DAYS, record="after"), policy=SOON
    ):
        world.job("odd")
        world.work_outside()
    assert got == [{"not kept": "a object is not JSON"}]
    assert Effect.objects.get().confirmed_at is not None
