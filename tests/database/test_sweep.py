"""What a pass of the sweep counts and records, how far its limits let it go, when one was good."""

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from reliability import dispatch
from reliability.conf import conf
from reliability.handlers import Event, ProviderHeader
from reliability.killing import Point
from reliability.models import Job, Run
from reliability.policy import RunOnce
from reliability.sweep import Swept, last_good, stalled, sweep
from reliability.work.lease import take
from reliability.work.settle import intend
from tests.database import world

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def nothing(event: Event) -> None:
    return None


@pytest.fixture(autouse=True)
def rung(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Know three kinds, and hear the bells."""
    bells: list[str] = []
    monkeypatch.setattr(dispatch, "ring", bells.append)
    with (
        world.local("local", nothing),
        world.kind("outside", nothing, sink=ProviderHeader()),
        world.kind("once", nothing, policy=RunOnce()),
    ):
        yield bells


def jobs(kind: str, number: int, prefix: str) -> list[Job]:
    return [world.job(kind, f"{prefix}-{n}") for n in range(number)]


def lose(number: int, kind: str = "outside") -> None:
    """Lease so many jobs and let their worker be lost, once-jobs after they began."""
    jobs(kind, number, f"lost {kind}")
    for leased in take("outside", limit=number):
        assert kind == "outside" or intend(leased)
        world.end_lease_of(leased.id)


def close_windows(number: int) -> None:
    for job in jobs("local", number, "late"):
        Job.objects.filter(pk=job.pk).update(not_after=timezone.now() - MINUTE)


def hold(number: int, why: str) -> None:
    """Hold so many jobs for a reason that holds no longer."""
    for job in jobs("local", number, why):
        Job.objects.filter(pk=job.pk).update(held=why)


def test_a_pass_records_how_many_jobs_each_rule_moved(rung: list[str]) -> None:
    lose(3)
    lose(2, "once")
    close_windows(4)
    hold(5, "paused")
    hold(1, "kind unknown")
    waiting = world.job("local", "nobody rang")
    Job.objects.filter(pk=waiting.pk).update(run_at=timezone.now() - 2 * MINUTE)
    before = timezone.now()
    swept = sweep("worker")
    assert swept == Swept(rescued=3, buried=2, expired=4, freed=6, rung=2, left=False)
    assert sorted(rung) == ["local", "outside"]
    run = Run.objects.get()
    assert (run.job, run.trigger, run.ok) == ("sweep", "worker", True)
    assert run.facts == {
        "rescued": 3, "buried": 2, "expired": 4, "freed": 6, "rung": 2, "left": False,
    }  # fmt: skip
    assert before <= run.started_at <= run.ended_at <= timezone.now()


def test_a_pass_that_moved_nothing_rings_nobody(rung: list[str]) -> None:
    world.job("local")
    assert sweep("worker") == Swept()
    assert rung == []


@pytest.mark.parametrize(
    ("arrange", "counted"),
    [
        (lose, "rescued"),
        (close_windows, "expired"),
        (lambda number: hold(number, "paused"), "freed"),
        (lambda number: hold(number, "kind unknown"), "freed"),
    ],
    ids=["lost", "late", "unpaused", "known again"],
)
def test_a_rule_moves_no_more_than_its_limit_and_says_that_more_may_wait(
    arrange: Callable[[int], None], counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrange(3)
    monkeypatch.setitem(conf().__dict__, "sweep_batch_max", 2)
    first, second = sweep("worker"), sweep("worker")
    assert (getattr(first, counted), first.left) == (2, True)
    assert (getattr(second, counted), second.left) == (1, False)


def test_kinds_that_are_known_again_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("local", "once"):
        jobs(kind, 2, kind)
    Job.objects.update(held=Job.Hold.KIND_UNKNOWN)
    monkeypatch.setitem(conf().__dict__, "sweep_batch_max", 3)
    assert [sweep("worker").freed for _ in range(3)] == [3, 1, 0]


def test_a_pass_that_broke_is_recorded_as_one_that_was_not_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(limit: int) -> int:
        raise RuntimeError("no such rule")

    monkeypatch.setattr(stalled, "expire", broken)
    with pytest.raises(RuntimeError, match="no such rule"):
        sweep("worker")
    run = Run.objects.get()
    assert (run.job, run.trigger, run.ok) == ("sweep", "worker", False)
    assert run.facts == {
        "rescued": 0, "buried": 0, "expired": 0, "freed": 0, "rung": 0, "left": False,
    }  # fmt: skip
    assert last_good() is None


def test_a_pass_can_be_killed_where_jobs_are_ready_again_and_nobody_was_told(
    monkeypatch: pytest.MonkeyPatch, rung: list[str]
) -> None:
    reached: list[tuple[Point, int]] = []
    monkeypatch.setattr(stalled, "reach", lambda point: reached.append((point, len(rung))))
    sweep("worker")
    assert reached == []
    lose(1)
    sweep("worker")
    assert reached == [(Point.RESCUED, 0)]


def test_a_pass_logs_what_it_did(caplog: pytest.LogCaptureFixture) -> None:
    lose(2)
    with caplog.at_level(logging.INFO, logger=stalled.logger.name):
        sweep("worker")
    [line] = [one for one in caplog.records if one.name == stalled.logger.name]
    assert line.getMessage() == "swept"
    assert vars(line)["rescued"] == 2


def test_the_last_good_pass_is_the_newest_sweep_that_did_not_break() -> None:
    now = timezone.now()
    assert last_good() is None
    for job, minutes, ok in (
        ("sweep", 9, True), ("sweep", 7, True), ("sweep", 5, False), ("alerts", 3, True),
    ):  # fmt: skip
        at = now - minutes * MINUTE
        Run.objects.create(job=job, trigger="beat", started_at=at, ended_at=at, ok=ok)
    assert last_good() == now - 7 * MINUTE
