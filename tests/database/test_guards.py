"""Guards of the engine that show only when something comes between; see docs/proof.md."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone

from reliability import dispatch
from reliability.claim.enqueue import Accepted, enqueue
from reliability.handlers import Event, ProviderHeader
from reliability.models import Job
from reliability.policy import Backoff
from reliability.sweep import sweep
from reliability.work.drain import drain
from reliability.work.lease import take, take_alone
from reliability.work.settle import Done, finish
from tests.database import world

pytestmark = pytest.mark.django_db

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


def elsewhere(do: Callable[[], None]) -> None:
    """Do something on a connection of its own, as another process would."""

    def close_after() -> None:
        try:
            do()
        finally:
            connection.close()

    thread = threading.Thread(target=close_after)
    thread.start()
    thread.join(20)


def test_a_stale_worker_cannot_finish_while_a_newer_one_works() -> None:
    job = world.job("outside")
    [stale] = take("outside", limit=1)
    world.end_lease(job)
    sweep("command")
    newer = take_alone("outside")
    assert newer
    assert finish([Done(stale, {"by": "stale"}, timezone.now())]) == set()
    assert finish([Done(newer, {"by": "newer"}, timezone.now())]) == {job.pk}
    job.refresh_from_db()
    assert job.result == {"by": "newer"}


def test_one_key_of_two_tenants_is_two_own_jobs() -> None:
    for tenant in ("acme", "other"):
        assert isinstance(enqueue("local", key="k", tenant=world.tenant(tenant)), Accepted)
    assert Job.objects.values("tenant").distinct().count() == 2


def test_the_sweep_rings_for_a_job_whose_bell_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung: list[str] = []
    world.job("local")
    Job.objects.update(run_at=timezone.now() - timedelta(minutes=2))
    monkeypatch.setattr(dispatch, "ring", rung.append)
    assert sweep("command").rung == 1
    assert rung == ["local"]


@pytest.mark.django_db(transaction=True)
def test_a_worker_waits_for_no_job_that_another_is_taking() -> None:
    for key in ("first", "second"):
        world.job("outside", key)
    taken: list[int] = []

    def take_beside() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '300ms'")
        taken.extend(leased.id for leased in take("outside", limit=1))

    with transaction.atomic():
        [mine] = take("outside", limit=1)
        elsewhere(take_beside)
    assert len(taken) == 1
    assert taken != [mine.id]


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_lost_its_job_leaves_no_rows_of_it() -> None:
    starts: list[str] = []

    def overtaken(event: Event) -> None:
        starts.append(f"start {len(starts) + 1}")
        Group.objects.create(name=starts[-1])
        if len(starts) == 1:
            elsewhere(take_over)

    def take_over() -> None:
        world.end_lease(Job.objects.get())
        sweep("command")

    with world.local("overtaken", overtaken):
        job = world.job("overtaken")
        drain("local")
    job.refresh_from_db()
    assert (job.state, job.starts, job.crashes) == ("done", 2, 1)
    rows = Group.objects.filter(name__startswith="start ").values_list("name", flat=True)
    assert list(rows) == ["start 2"]
