"""What the prune lets go of, how much of it in one pass, and what it records of itself."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from reliability.conf import conf
from reliability.handlers import Event, MappedOperation
from reliability.models import (
    Body,
    DestinationAnswer,
    Job,
    ProvisionalCheck,
    Run,
    Source,
)
from reliability.sweep.prune import Pruned, prune
from reliability.work.drain import drain
from reliability.work.lease import take
from tests.database import world

pytestmark = pytest.mark.django_db


def nothing(event: Event) -> None:
    return None


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local("local", nothing):
        yield


def ran(days: int, job: str = "sweep") -> None:
    at = timezone.now() - timedelta(days=days)
    Run.objects.create(
        job=job, trigger="beat", started_at=at, ended_at=at, ok=True, facts={"days": days}
    )


def asked(source: Source, days: int) -> None:
    """Leave a check, with its age as what it took in."""
    at = timezone.now() - timedelta(days=days)
    ProvisionalCheck.objects.create(
        tenant_id=source.tenant_id, source=source, asked_at=at, from_at=at, accepted=days
    )


def answered(job: Job, token: int, days: int) -> None:
    DestinationAnswer.objects.create(
        tenant_id=job.tenant_id, job=job, token=token, status=200, size_bytes=2, body=b"ok",
        sha256=bytes(32), at=timezone.now() - timedelta(days=days),
    )  # fmt: skip


def days_from_now(days: int) -> time_machine.travel:
    return time_machine.travel(timezone.now() + timedelta(days=days), tick=False)


def kept() -> set[str]:
    return set(Body.objects.values_list("key__key", flat=True))


def test_passes_and_checks_go_after_30_days_and_a_proof_stays() -> None:
    source = world.source()
    for days in (29, 31):
        ran(days)
        asked(source, days)
    ran(400, job="prove")
    pruned = prune("command")
    assert (pruned.runs, pruned.checks) == (1, 1)
    runs = Run.objects.exclude(job="prune").order_by("ended_at")
    assert list(runs.values_list("job", "facts__days")) == [("prove", 400), ("sweep", 29)]
    assert list(ProvisionalCheck.objects.values_list("accepted", flat=True)) == [29]


def test_a_body_goes_after_30_days_when_nobody_has_to_work_on_it_any_more() -> None:
    states = ("ready", "done", "dead", "discarded", "resolved")
    with days_from_now(-31):
        world.job("local", "running")
        assert take("local", limit=1)
        for state in states:
            world.job("local", state)
    with days_from_now(-29):
        world.job("local", "young")
    for key, state in (*zip(states, states, strict=True), ("young", "done")):
        job = Job.objects.filter(key__key=key)
        if state in ("discarded", "resolved"):
            job.update(state="dead")
        job.update(state=state)
    assert prune("command").bodies == 3
    assert kept() == {"ready", "running", "dead", "young"}


def test_the_body_of_an_absorbed_event_goes_although_it_never_had_a_job() -> None:
    source = world.source()
    charge = MappedOperation(operation_class="charge", reference="ch_1", amount_minor=1)
    with days_from_now(-31):
        for key in ("first", "second"):
            world.take_in(source, world.asked(key, operation=charge))
    assert prune("command").bodies == 1
    assert kept() == {"first"}, "its job is not done"


@pytest.fixture
def two_batches_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conf().__dict__, "sweep_batch_max", 2)
    monkeypatch.setitem(conf().__dict__, "prune_batches_max", 2)


@pytest.mark.usefixtures("two_batches_of_two")
def test_a_pass_removes_so_many_batches_of_each_and_the_next_goes_on() -> None:
    source = world.source()
    for _ in range(5):
        ran(31)
        asked(source, 31)
    with days_from_now(-31):
        jobs = [world.job("local", f"k-{n}") for n in range(5)]
    drain("local")
    for n in range(5):
        answered(jobs[0], n, 31)
    assert prune("command") == Pruned(runs=4, checks=4, answers=4, bodies=4, jobs=0)
    assert prune("command") == Pruned(runs=1, checks=1, answers=1, bodies=1, jobs=0)
    assert prune("command") == Pruned(runs=0, checks=0, answers=0, bodies=0, jobs=0)


@pytest.mark.usefixtures("two_batches_of_two")
def test_a_pass_purges_so_many_batches_of_done_jobs_and_the_next_goes_on() -> None:
    for n in range(5):
        world.job("local", f"k-{n}")
    drain("local")
    with days_from_now(61):
        assert [prune("command").jobs for _ in range(3)] == [4, 1, 0]


def test_a_pass_is_recorded_with_what_it_removed() -> None:
    source, before = world.source(), timezone.now()
    for days in (31, 32, 33):
        ran(days)
    for days in (31, 32):
        asked(source, days)
    prune("beat")
    run = Run.objects.get()
    assert (run.job, run.trigger, run.ok) == ("prune", "beat", True)
    assert run.facts == {"runs": 3, "checks": 2, "answers": 0, "bodies": 0, "jobs": 0}
    assert before <= run.started_at <= run.ended_at <= timezone.now()
