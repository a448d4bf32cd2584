"""Scheduled work: each period of each subject once, over missed beats, two beats and clock changes."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import connection

from reliability.claim.identity import Every, Hour, Month
from reliability.claim.schedule import Subject, run_schedules, schedule, unschedule
from reliability.handlers import Event
from reliability.models import ProcessedKey, Receipt, Run
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db

BERLIN = "Europe/Berlin"
SINCE = datetime(2026, 3, 15, tzinfo=UTC)
KIND = "invoice.monthly"


def effect(event: Event) -> None:
    Group.objects.create(name=event.key)


@contextmanager
def scheduled(
    *subjects: Subject, every: Every = Month, since: datetime = SINCE
) -> Iterator[None]:
    world.tenant()
    with world.local(KIND, effect):
        schedule(KIND, every=every, subjects=lambda: subjects, since=since)
        try:
            yield
        finally:
            unschedule(KIND)


def subject(name: str = "cus_1", **told: object) -> Subject:
    return Subject(tenant="acme", name=name, **told)  # type: ignore[arg-type]


def beat(*moments: str) -> Sequence[int]:
    counts = []
    for moment in moments:
        with time_machine.travel(datetime.fromisoformat(moment), tick=False):
            counts.append(run_schedules("beat").enqueued)
    return counts


def keys() -> list[str]:
    return list(ProcessedKey.objects.order_by("key").values_list("key", flat=True))


def test_a_period_is_one_job_however_often_the_clock_fires() -> None:
    with scheduled(subject(), subject("cus_2")):
        assert beat("2026-03-15T00:00Z", "2026-03-20T00:00Z", "2026-03-31T23:59Z") == [2, 0, 0]
        assert beat("2026-04-01T00:00Z") == [2]
        drain("local")
    assert keys() == [
        '["cus_1","2026-03"]',
        '["cus_1","2026-04"]',
        '["cus_2","2026-03"]',
        '["cus_2","2026-04"]',
    ]
    assert Group.objects.filter(name__startswith='["cus_').count() == 4
    assert Receipt.objects.count() == 4, "a beat with nothing to do counts no duplicates"


def test_missed_periods_are_caught_up_with_oldest_first() -> None:
    with scheduled(subject()):
        beat("2026-03-15T00:00Z")
        assert beat("2026-07-02T00:00Z") == [4]
    found = ProcessedKey.objects.order_by("pk").values_list("key", flat=True)
    assert list(found)[1:] == [f'["cus_1","2026-0{month}"]' for month in (4, 5, 6, 7)]


def test_a_subject_owes_nothing_from_before_it_was_there() -> None:
    joined = datetime(2026, 5, 10, tzinfo=UTC)
    with scheduled(
        subject(since=joined), subject("later", since=datetime.max.replace(tzinfo=UTC))
    ):
        beat("2026-06-01T00:00Z")
    assert keys() == ['["cus_1","2026-05"]', '["cus_1","2026-06"]']


def test_a_month_begins_on_the_subjects_clocks() -> None:
    with scheduled(
        subject("east", zone="Asia/Tokyo"), subject("west", zone="America/New_York")
    ):
        beat("2026-03-20T00:00Z")
        assert beat("2026-03-31T15:00Z") == [1]
        assert keys()[:2] == ['["east","2026-03"]', '["east","2026-04"]']
        assert beat("2026-04-01T03:59Z", "2026-04-01T04:00Z") == [0, 1]


def test_hourly_work_over_a_clock_change_is_neither_doubled_nor_lost() -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    beats = [
        f"2026-10-25T0{hour}:{minute}:00Z" for hour in range(4) for minute in ("00", "30")
    ]
    with scheduled(subject(zone=BERLIN), every=Hour, since=start):
        beat("2026-10-24T23:59:00Z", *beats)
    assert [key[10:-2] for key in keys()] == [
        "2026-10-25T00+02:00",
        "2026-10-25T01+02:00",
        "2026-10-25T02+01:00",
        "2026-10-25T02+02:00",
        "2026-10-25T03+01:00",
        "2026-10-25T04+01:00",
    ]


def test_only_so_many_missed_periods_are_caught_up_with() -> None:
    with scheduled(subject(), every=Hour, since=datetime(2026, 1, 1, tzinfo=UTC)):
        assert beat("2026-03-15T12:00Z") == [50]
    assert keys()[-1] == '["cus_1","2026-03-15T12+00:00"]'


def test_a_job_is_told_its_subject_and_period() -> None:
    seen: list[object] = []
    world.tenant()
    with world.local("told", lambda event: seen.append(event.payload)):
        schedule("told", every=Month, subjects=lambda: [subject(payload=5)], since=SINCE)
        beat("2026-03-15T00:00Z")
        unschedule("told")
        drain("local")
    assert seen == [{"subject": "cus_1", "period": "2026-03", "payload": 5}]


def test_a_schedule_that_fails_costs_the_others_nothing_and_is_recorded() -> None:
    def broken() -> list[Subject]:
        raise ValueError("the customer table is gone")

    schedule("broken", every=Month, subjects=broken, since=SINCE)
    try:
        with scheduled(subject()):
            assert beat("2026-03-20T00:00Z") == [1]
    finally:
        unschedule("broken")
    run = Run.objects.get(job="schedule")
    assert (run.ok, run.facts) == (False, {"enqueued": 1, "failed": ["broken"]})


def test_a_schedule_is_declared_once_and_names_the_zone_it_began_in() -> None:
    with scheduled(subject()), pytest.raises(ValueError, match="has a schedule already"):
        schedule(KIND, every=Month, subjects=list, since=SINCE)
    with pytest.raises(ValueError, match="must name its zone"):
        schedule("x", every=Month, subjects=list, since=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_make_each_period_once() -> None:
    start = threading.Barrier(2)
    counts: list[int] = []

    def fire() -> None:
        try:
            start.wait()
            counts.append(run_schedules("beat").enqueued)
        finally:
            connection.close()

    subjects = [subject(f"cus_{n}") for n in range(50)]
    with scheduled(*subjects, since=datetime(2026, 11, 30, tzinfo=UTC)):
        threads = [threading.Thread(target=fire) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(counts) == ProcessedKey.objects.count()
    assert ProcessedKey.objects.count() % 50 == 0
    assert Run.objects.filter(ok=True).count() == 2
