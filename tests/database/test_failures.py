"""Failures of engines like ours that no other test here is about; see docs/failures.md."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import OperationalError, connection
from django.utils import timezone

import reliability
from reliability.handlers import Event, ProviderHeader
from reliability.models import Job
from reliability.policy import RELEASES_MAX, Backoff
from reliability.sweep import sweep
from reliability.work.drain import drain
from reliability.work.lease import take, worker
from reliability.work.settle import release
from tests.database import world

pytestmark = pytest.mark.django_db

QUARTER = timedelta(minutes=15)
SOON = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=3)


def effect(event: Event) -> None:
    Group.objects.create(name=event.key)


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.local("local", effect),
        world.kind("outside", effect, sink=ProviderHeader(), policy=SOON),
    ):
        yield


def test_no_time_is_ever_handed_to_the_broker() -> None:
    folder = Path(reliability.__file__).parent
    words = re.compile(r"\b(countdown|eta)=|\.retry\(|apply_async\(")
    found = [
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if words.search(path.read_text(encoding="utf-8")) and path.name != "adoption.py"
    ]
    assert found == []


def test_ten_bells_for_one_job_are_one_start() -> None:
    job = world.job("local")
    assert [drain("local") for _ in range(10)] == [1] + [0] * 9
    job.refresh_from_db()
    assert job.starts == 1


@pytest.mark.parametrize("skew", [-QUARTER, QUARTER])
def test_a_worker_whose_clock_is_wrong_works_as_any_other(skew: timedelta) -> None:
    with time_machine.travel(timezone.now() + skew):
        jobs = [world.job("local"), world.job("outside", "k-2")]
        drain("local")
        world.work_outside()
        assert sweep("command").rescued == 0
    for job in jobs:
        job.refresh_from_db()
        assert (job.state, job.starts, job.releases) == ("done", 1, 0)


@pytest.mark.parametrize("skew", [-QUARTER, QUARTER])
def test_a_sweep_whose_clock_is_wrong_takes_no_living_lease(skew: timedelta) -> None:
    world.job("outside")
    assert take("outside", limit=1)
    with time_machine.travel(timezone.now() + skew):
        assert sweep("command").rescued == 0


def test_a_worker_is_named_by_a_mark_of_its_own_and_not_by_a_pid_that_comes_again() -> None:
    host, pid, mark = worker().split(":")
    assert host
    assert pid.isdigit()
    assert re.fullmatch(r"[0-9a-f]{8}", mark)


def test_a_release_costs_no_attempt_and_is_given_twenty_times_a_round() -> None:
    job = world.job("outside")
    for _ in range(RELEASES_MAX):
        [leased] = take("outside", limit=1)
        assert leased.failures == 0
        assert release(leased)
    [leased] = take("outside", limit=1)
    assert leased.failures == 0
    assert not release(leased)
    job.refresh_from_db()
    assert (job.state, job.starts, job.releases) == ("running", 21, 20)


def test_numbers_past_two_thousand_million_are_numbers_like_others() -> None:
    for sequence in ("job_id_seq", "processedkey_id_seq", "attempt_id_seq", "token"):
        world.query(f"ALTER SEQUENCE reliability_{sequence} RESTART WITH {2**31 + 1}")
    job = world.job("local")
    drain("local")
    job.refresh_from_db()
    assert job.pk > 2**31
    assert job.token > 2**31
    assert job.attempts.get().pk > 2**31


def test_every_session_has_limits() -> None:
    limits = "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"
    assert [world.query(f"SHOW {limit}")[0][0] for limit in limits] == ["30s", "5s", "1min"]


def test_keys_are_compared_byte_by_byte_whatever_the_systems_language() -> None:
    columns = world.query(
        "SELECT table_name, collation_name FROM information_schema.columns WHERE (table_name, "
        "column_name) IN (('reliability_processedkey', 'key'), "
        "('reliability_operation', 'reference')) ORDER BY 1"
    )
    assert columns == [("reliability_operation", "C"), ("reliability_processedkey", "C")]


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_raised_and_happened_is_not_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [world.job("local", f"k-{n}") for n in range(3)]
    wrapper: Any = connection
    real, raised = wrapper._commit, list[bool]()

    def commits_and_raises() -> None:
        real()
        if not raised and Job.objects.filter(state="done").exists():
            raised.append(True)
            raise OperationalError("the server closed the connection")

    monkeypatch.setattr(wrapper, "_commit", commits_and_raises)
    drain("local")
    monkeypatch.undo()
    assert raised
    for job in jobs:
        job.refresh_from_db()
        assert (job.state, job.starts, job.attempts.count()) == ("done", 1, 1)
    assert Group.objects.filter(name__startswith="k-").count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_raised_and_did_not_happen_is_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = world.job("local")
    wrapper: Any = connection
    real, raised = wrapper._commit, list[bool]()

    def raises_once() -> None:
        if not raised and Group.objects.filter(name="k-1").exists():
            raised.append(True)
            wrapper._rollback()
            raise OperationalError("the server closed the connection")
        real()

    monkeypatch.setattr(wrapper, "_commit", raises_once)
    drain("local")
    monkeypatch.undo()
    job.refresh_from_db()
    assert (job.state, job.starts, job.attempts.count()) == ("done", 1, 1)
    assert Group.objects.filter(name="k-1").count() == 1
