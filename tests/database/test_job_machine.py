"""A job under at most three workers, the sweep, an operator and the purge, in any order.

Whatever Hypothesis makes of it, PostgreSQL and the model agree after every move. More examples:
MACHINE_EXAMPLES=500.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reliability import handlers
from reliability.claim.enqueue import Duplicate, enqueue
from reliability.console.conservation import conservation
from reliability.handlers import ProviderHeader
from reliability.models import Attempt, Job, ProcessedKey
from reliability.policy import Backoff, RunOnce
from reliability.work.dead_letters import (
    Act,
    Moved,
    Seen,
    discard,
    requeue,
    resolve,
    restore,
    undo_requeue,
)
from reliability.work.lease import Leased, take, take_alone
from reliability.work.purge import purge_done
from reliability.work.rescue import lost, take_back
from reliability.work.settle import Done, Failed, fail, finish, finish_late, intend, release
from tests.database import world
from tests.database.job_model import ATTEMPTS, CRASHES, RELEASES, ModelJob, Start

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

EXAMPLES = os.environ.get("MACHINE_EXAMPLES")
SOON = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=ATTEMPTS)
WORKERS = st.integers(0, 2)
MOSTLY = st.sampled_from((True, True, True, False))


class JobMachine(RuleBasedStateMachine):
    """One job after the other. ``workers`` hold what each was leased last, theirs or no longer."""

    @initialize(repeatable=st.booleans())
    def open_the_world(self, repeatable: bool) -> None:  # noqa: FBT001 - drawn
        self.outer = transaction.atomic()
        self.outer.__enter__()
        self.ann = Act(world.tenant(), "ann", reason="as the machine says")
        self.workers: dict[int, tuple[Leased, Start, ModelJob]] = {}
        self.jobs = 0
        self.enqueue_job(repeatable=repeatable)

    def enqueue_job(self, *, repeatable: bool) -> None:
        self.jobs += 1
        self.kind = "repeatable" if repeatable else "once"
        self.job_id = world.job(self.kind, f"k-{self.jobs}").pk
        self.model = ModelJob(repeatable)

    def teardown(self) -> None:
        if hasattr(self, "outer"):
            transaction.set_rollback(True)
            self.outer.__exit__(None, None, None)

    @precondition(lambda self: self.model.state in {"resolved", "discarded"})
    @rule(repeatable=st.booleans())
    def go_on_with_another_job(self, repeatable: bool) -> None:  # noqa: FBT001 - drawn
        self.enqueue_job(repeatable=repeatable)

    # Workers

    @rule(worker=WORKERS, begins=MOSTLY)
    def start(self, worker: int, begins: bool) -> None:  # noqa: FBT001 - drawn
        Job.objects.update(run_at=timezone.now() - timedelta(seconds=1))
        if self.model.crashes:
            assert take("outside", limit=1) == [], "a job with a crash behind it runs alone"
            one = take_alone("outside")
            found = [one] if one else []
        else:
            assert take_alone("outside") is None
            found = take("outside", limit=2)
        assert len(found) == (self.model.state == "ready")
        for leased in found:
            start = self.model.start(leased.token)
            self.workers[worker] = leased, start, self.model
            if begins and self.kind == "once":
                assert intend(leased)
                assert self.model.intend(start)

    @precondition(lambda self: self.workers)
    @rule(
        data=st.data(), how=st.sampled_from(("begin", "result", "result", "fail", "release"))
    )
    def come_back(self, data: st.DataObject, how: str) -> None:
        """Let a worker, whoever holds the job by now, try to write what became of its start."""
        leased, start, model = self.workers[data.draw(st.sampled_from(sorted(self.workers)))]
        match how:
            case "begin" if not model.repeatable:
                assert intend(leased) == model.intend(start)
            case "result":
                done = Done(leased, {"token": leased.token}, timezone.now())
                finished = bool(finish([done]))
                assert finished == model.finish(start)
                if not finished:
                    assert finish_late(done) == model.finish_late(start)
            case "fail":
                kind = handlers.find(leased.kind)
                assert kind is not None
                moved = fail(Failed(leased, kind, ValueError("no"), timezone.now()))
                assert (moved is not None) == model.fail(start)
            case "release" if not start.intended:
                assert release(leased) == model.release(start)

    # The sweep and the purge

    @precondition(lambda self: self.model.state == "running")
    @rule(swept=MOSTLY)
    def lose_the_worker(self, swept: bool) -> None:  # noqa: FBT001 - drawn
        world.end_lease_of(self.job_id)
        self.model.expired = True
        if swept:
            self.sweep()

    @rule()
    def sweep(self) -> None:
        alone = any(
            start.alone for _, start, model in self.workers.values() if model.holds(start)
        )
        with transaction.atomic():
            take_back(lost(10))
        self.model.sweep(alone=alone)

    @precondition(lambda self: self.model.state == "done")
    @rule(repeatable=st.booleans())
    def purge_and_go_on(self, repeatable: bool) -> None:  # noqa: FBT001 - drawn
        assert purge_done(timezone.now() + timedelta(days=1), limit=10) == 1
        self.deliver_it_again()
        self.enqueue_job(repeatable=repeatable)

    @precondition(lambda self: self.model.state != "ready")
    @rule()
    def deliver_it_again(self) -> None:
        answer = enqueue(self.kind, key=f"k-{self.jobs}", tenant=world.tenant())
        assert isinstance(answer, Duplicate)
        assert answer.state == self.model.state

    # The operator

    @precondition(lambda self: self.model.state == "dead")
    @rule(act=st.sampled_from((requeue, requeue, requeue, discard, resolve)))
    def decide(self, act: Callable[..., Moved]) -> None:
        assert act([self.seen(version=-1)], self.ann).letter_ids == [], "seen too long ago"
        assert act([self.seen()], self.ann).letter_ids
        match act.__name__:
            case "requeue":
                self.model.requeue()
            case "discard":
                self.model.close("discarded")
            case _:
                self.model.close("resolved")

    @precondition(lambda self: self.model.round > 1 and self.model.state == "ready")
    @rule()
    def undo(self) -> None:
        undone = undo_requeue(self.seen(round_=self.model.round - 1), self.ann).letter_ids
        assert bool(undone) == (not self.model.started_in_round)
        if undone:
            self.model.undo()

    @precondition(lambda self: self.model.state == "discarded")
    @rule()
    def restore(self) -> None:
        assert restore(self.seen(), self.ann).letter_ids
        self.model.restore()

    # What holds after every move

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "model"):
            return
        figures = conservation(world.tenant())
        assert (figures.accepted, figures.missing) == (self.jobs, 0)
        assert ProcessedKey.objects.lost().count() == 0

    @invariant()
    def database_and_model_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        job, model = Job.objects.get(pk=self.job_id), self.model
        assert (job.state, job.round, job.starts, job.token) == (
            model.state, model.round, model.starts, model.token,
        )  # fmt: skip
        assert (job.intent_at is not None) == model.intent
        assert dict(job.letters.values_list("round", "status")) == model.letters

    @invariant()
    def starts_are_bounded_and_run_once_begins_once_a_round(self) -> None:
        if not hasattr(self, "model"):
            return
        job = Job.objects.get(pk=self.job_id)
        assert job.starts - job.round_starts <= ATTEMPTS + CRASHES + RELEASES
        assert all(times <= 1 for times in self.model.begun.values())
        ended = Attempt.objects.filter(job=job).exclude(outcome="late").count()
        assert ended == job.starts - (job.state == "running")

    def seen(self, *, version: int = 0, round_: int | None = None) -> Seen:
        job = Job.objects.get(pk=self.job_id)
        return Seen(job.letters.get(round=round_ or job.round).pk, job.version + version)


def test_a_job_is_what_the_rules_say_in_whatever_order_they_come() -> None:
    phases = tuple(Phase) if EXAMPLES else (Phase.generate,)  # shrinking takes minutes
    chosen: dict[str, Any] = {"max_examples": int(EXAMPLES or 15), "phases": phases}
    with (
        world.kind("repeatable", lambda event: None, sink=ProviderHeader(), policy=SOON),
        world.kind("once", lambda event: None, policy=RunOnce()),
    ):
        run_state_machine_as_test(
            JobMachine,
            settings=settings(
                **chosen, stateful_step_count=25, deadline=None, database=None,
                suppress_health_check=list(HealthCheck), derandomize=not EXAMPLES,
            ),
        )  # fmt: skip
