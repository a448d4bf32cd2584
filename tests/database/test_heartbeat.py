"""Long handlers keep their lease by heartbeats, up to a deadline; a stale one is told to end."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from reliability import checks, handlers
from reliability.conf import conf
from reliability.errors import JobInterrupted, JobTimeout, LeaseLost, NotDeclared
from reliability.handlers import Event, LocalTransaction, ProviderHeader
from reliability.models import Job
from reliability.policy import RunOnce
from reliability.sweep import sweep
from reliability.work import attempt as attempts
from reliability.work.batch import prepare
from reliability.work.effects import Effects
from reliability.work.lease import take
from tests.database import world

pytestmark = pytest.mark.django_db

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.kind(
        "export", lambda event: None, policy=RunOnce(), heartbeat=MINUTE, deadline=HOUR
    ):
        yield


def started() -> tuple[Job, Effects]:
    job = world.job("export")
    [ready] = prepare(take("outside", limit=1))
    return job, Effects(ready.job, ready.kind)


def at(job: Job, **columns: Any) -> None:
    Job.objects.filter(pk=job.pk).update(**columns)
    job.refresh_from_db()


def test_a_heartbeat_extends_the_lease_and_the_sweep_leaves_the_job_alone() -> None:
    job, effects = started()
    at(job, lease_expires_at=timezone.now() + timedelta(seconds=2))
    effects.heartbeat()
    job.refresh_from_db()
    assert job.lease_expires_at is not None
    left = job.lease_expires_at - timezone.now()
    assert conf().lease - timedelta(seconds=5) < left <= conf().lease
    assert sweep("command").rescued == 0


def test_a_lease_is_never_extended_past_the_deadline() -> None:
    job, effects = started()
    soon = timezone.now() + MINUTE
    at(job, started_at=soon - HOUR, lease_expires_at=timezone.now() + timedelta(seconds=2))
    effects.heartbeat()
    job.refresh_from_db()
    assert job.lease_expires_at == soon


def test_past_the_deadline_the_handler_is_ended() -> None:
    job, effects = started()
    at(job, started_at=timezone.now() - HOUR - timedelta(seconds=1))
    with pytest.raises(JobTimeout, match="past its deadline of 1:00:00"):
        effects.heartbeat()


def test_a_heartbeat_after_the_lease_was_lost_ends_the_handler() -> None:
    job, effects = started()
    world.end_lease(job)
    with pytest.raises(LeaseLost):
        effects.heartbeat()
    sweep("command")
    assert Job.objects.get(pk=job.pk).state == "ready"
    with pytest.raises(LeaseLost):
        effects.heartbeat()


def test_a_heartbeat_ends_the_handler_of_a_worker_that_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, effects = started()
    monkeypatch.setattr(attempts, "stopping", lambda: True)
    with pytest.raises(JobInterrupted):
        effects.heartbeat()


def test_a_handler_beats_through_its_event() -> None:
    beats: list[str] = []

    def handle(event: Event) -> None:
        event.heartbeat()
        beats.append(event.key)

    with world.kind("beating", handle, policy=RunOnce(), heartbeat=MINUTE, deadline=HOUR):
        job = world.job("beating")
        world.work_outside()
        job.refresh_from_db()
    assert (job.state, beats) == ("done", ["k-1"])


def test_a_kind_that_declares_no_heartbeat_cannot_beat() -> None:
    def handle(event: Event) -> None:
        event.heartbeat()

    with world.kind("short", handle, policy=RunOnce()):
        job = world.job("short")
        world.work_outside()
        assert job.letters.get().error_type == "NotDeclared"


def test_a_local_handler_has_no_start_to_beat_for() -> None:
    def handle(event: Event) -> None:
        with pytest.raises(NotDeclared):
            event.heartbeat()

    with world.local("local", handle):
        world.job("local")
        [ready] = prepare(take("local", limit=1))
        ready.kind.handle(ready.event)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"heartbeat": MINUTE}, "a heartbeat and a longer deadline"),
        ({"deadline": HOUR}, "a heartbeat and a longer deadline"),
        ({"heartbeat": HOUR, "deadline": HOUR}, "a heartbeat and a longer deadline"),
        ({"heartbeat": MINUTE, "deadline": HOUR, "sink": LocalTransaction()}, "cannot extend"),
    ],
)
def test_a_heartbeat_that_could_not_work_is_refused(declared: Any, why: str) -> None:
    register: Callable[..., Any] = handlers.handler("x", **declared)
    with pytest.raises(ValueError, match=why):
        register(lambda event: None)
    assert handlers.find("x") is None


def test_a_heartbeat_too_rare_for_the_lease_is_an_error_at_start() -> None:
    rare = conf().lease / 2 + timedelta(seconds=1)
    with world.kind(
        "rare", lambda event: None, policy=RunOnce(), heartbeat=rare, deadline=HOUR
    ):
        [found] = checks.every_heartbeat_keeps_its_lease()
    assert found.id == "reliability.E013"


def test_the_worst_case_of_a_long_kind_counts_its_deadline() -> None:
    with world.kind("long", lambda event: None, sink=ProviderHeader(), heartbeat=MINUTE,
                    deadline=HOUR):  # fmt: skip
        kind = handlers.find("long")
        assert kind is not None
        assert checks.worst_case_of(kind).work == 12 * HOUR
        assert checks.worst_case_of(kind).crashes >= 10 * HOUR
