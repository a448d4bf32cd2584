"""What a lease says of its start, and that a handler is given the event as it was claimed."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from reliability.conf import conf
from reliability.handlers import DownstreamKey, Event, ProviderHeader
from reliability.killing import Point
from reliability.models import Body, Job
from reliability.sweep import sweep
from reliability.work import lease
from reliability.work.lease import (
    Leased,
    Read,
    event_of,
    events,
    held,
    take,
    take_alone,
    take_inline,
    worker,
)
from tests.database import world

pytestmark = pytest.mark.django_db

KIND = "stripe.charge.succeeded"
THEN = datetime(2026, 11, 1, 12, tzinfo=UTC)
CLAIMED = Event(
    tenant="acme", source="stripe-live", key="evt_1", kind=KIND, body=b'{"id": "evt_1"}',
    downstream_key=DownstreamKey("down-1"), headers={"X-Shop": "7"}, occurred_at=THEN,
    asked_by="mara", failures=0, round=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    window = ProviderHeader(window=timedelta(hours=10))
    with (
        world.local(KIND, lambda event: None),
        world.kind("outside", lambda event: None, sink=window),
    ):
        yield


@pytest.fixture
def claimed() -> Job:
    facts = {"downstream_key": "down-1", "headers": {"X-Shop": "7"}, "occurred_at": THEN}
    asked = world.asked("evt_1", KIND, asked_by="mara", **facts)
    world.take_in(world.source(), asked)
    return Job.objects.get()


def test_a_handler_is_given_the_event_as_it_was_claimed(claimed: Job) -> None:
    [leased] = take("local", limit=5)
    read = Read(event=CLAIMED, own_job=False, unconfirmed=False, erased=False)
    assert events([leased]) == {claimed.pk: read}


def test_a_later_start_is_told_its_round_and_the_failures_before_it(claimed: Job) -> None:
    [leased] = take("local", limit=5)
    later = replace(leased, starts=3, round=2)
    assert events([later])[claimed.pk].event == replace(CLAIMED, failures=2, round=2)


def test_whoever_verifies_is_given_the_event_of_its_round(claimed: Job) -> None:
    assert event_of(claimed) == CLAIMED
    claimed.round = 2
    assert event_of(claimed) == replace(CLAIMED, round=2)


def test_an_event_whose_body_was_taken_away_is_empty_and_says_so(claimed: Job) -> None:
    [leased] = take("local", limit=5)
    Body.objects.all().delete()
    read = events([leased])[claimed.pk]
    assert (read.erased, read.event.body) == (True, b"")


def test_our_own_job_is_known_as_one() -> None:
    job = world.job(KIND)
    assert events(take("local", limit=5))[job.pk].own_job


def own(leased: Leased) -> dict[str, Any]:
    """Leave out when it was taken: that is this process's own."""
    facts = asdict(leased)
    del facts["taken"]
    return facts


def test_a_report_from_outside_speaks_for_the_last_start() -> None:
    job = world.job("outside")
    [leased] = take("outside", limit=5)
    job.refresh_from_db()
    assert own(held(job)) == own(leased)


@pytest.mark.parametrize("how", ["among others", "alone", "inline"])
def test_a_lease_names_its_worker_and_lasts_as_long_as_agreed(how: str) -> None:
    job = world.job("outside")
    if how == "alone":
        take("outside", limit=1)
        world.end_lease(job)
        sweep("command")
    match how:
        case "among others":
            [leased] = take("outside", limit=5)
        case "alone":
            leased = take_alone("outside") or pytest.fail("there is one")
        case _:
            leased = take_inline(job.public_id) or pytest.fail("there is one")
    job.refresh_from_db()
    assert (leased.id, leased.alone, job.worker) == (job.pk, how == "alone", worker())
    lasts = leased.lease_expires_at - leased.started_at
    assert abs(lasts - conf().lease) < timedelta(seconds=1)


def test_where_there_is_nothing_to_lease_there_is_no_lease() -> None:
    assert take("outside", limit=5) == []
    assert take_alone("outside") is None
    assert take_inline(uuid4()) is None


def test_a_destination_in_trouble_stops_only_what_goes_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = world.job(KIND, "here"), world.job("outside", "there")
    monkeypatch.setattr(lease, "barred", lambda: [here.source_id, there.source_id])
    assert take("outside", limit=5) == []
    assert [leased.id for leased in take("local", limit=5)] == [here.pk]


def test_a_worker_can_be_killed_once_it_holds_a_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: list[Point] = []
    monkeypatch.setattr(lease, "reach", reached.append)
    take("outside", limit=1)
    take_alone("outside")
    assert reached == []
    job = world.job("outside")
    take("outside", limit=1)
    assert reached == [Point.LEASED]
    world.end_lease(job)
    sweep("command")
    take_alone("outside")
    assert reached == [Point.LEASED, Point.LEASED]
