"""What is due, when, and in which zone; late statements and days without any."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine

from reliability.models import Report, Run, Source
from reliability.reconcile import plan
from reliability.reconcile.local_day import bounds, due_before, hours_of, is_due
from reliability.reconcile.planner import Planned, compare_onwards
from tests.database.days import (
    DAY,
    MORNING_AFTER,
    Row,
    a_file,
    a_source,
    give,
    open_ones,
    operation,
    report,
    told,
)

pytestmark = pytest.mark.django_db

ONE_DAY = timedelta(days=1)
TARGET2 = {"cadence": "business days", "holidays": "ECB"}


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(MORNING_AFTER, tick=False) as traveller:
        yield traveller


def created(day: int, **facts: Any) -> Source:
    return a_source(created_at=datetime(2026, 10, day, 12, tzinfo=UTC), **facts)


def test_a_day_is_compared_once_it_is_over_and_has_a_statement() -> None:
    source = created(14)
    assert plan("beat") == Planned()
    give(source, a_file(Row("ch_1")))
    assert plan("beat") == Planned(compared=1)
    assert plan("beat") == Planned()
    assert Report.objects.get().created_by == "the planner"
    run = Run.objects.order_by("pk").last()
    assert run
    assert (run.job, run.trigger, run.ok) == ("reconcile", "beat", True)


def test_a_day_without_a_statement_is_absent_once_and_only_after_its_deadline(
    clock: time_machine.Traveller,
) -> None:
    source = created(14)
    clock.move_to(datetime(2026, 10, 15, 9, 59, tzinfo=UTC))
    assert plan("beat") == Planned()
    clock.move_to(datetime(2026, 10, 15, 10, 0, tzinfo=UTC))
    assert plan("beat") == Planned(absent=1)
    assert plan("beat") == Planned()
    give(source, a_file())
    assert plan("beat") == Planned(compared=1)
    newest = Report.objects.get(current=True)
    assert (newest.version, newest.completeness) == (2, "complete")


def test_a_source_that_compares_nothing_is_never_due(clock: time_machine.Traveller) -> None:
    created(1, statement_kinds=[])
    a_source("plain", statement_format="")
    clock.move_to(datetime(2026, 10, 20, 12, tzinfo=UTC))
    assert plan("beat") == Planned()


def test_missed_days_are_caught_up_oldest_first_within_the_limit(
    clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(1, statement_deadline_hours=0)
    clock.move_to(datetime(2026, 10, 26, 12, tzinfo=UTC))
    first = plan("beat")
    assert (first.absent, first.left) == (20, True)
    assert Report.objects.earliest("day").day == date(2026, 10, 1)
    assert plan("beat") == Planned(absent=5)


def test_a_revised_statement_is_compared_again() -> None:
    source = created(14)
    report(source, Row("ch_1"))
    give(source, a_file(Row("ch_1"), Row("ch_2")))
    assert plan("beat") == Planned(compared=1)
    assert open_ones(source) == {("ch_1", "missing"), ("ch_2", "missing")}


def test_a_source_that_cannot_be_compared_does_not_stop_the_others() -> None:
    broken = a_source("a-broken", statement_options={"tolerance_minor": "many"})
    give(broken, a_file())
    Source.objects.filter(pk=broken.pk).update(statement_deadline_hours=0)
    good = a_source("b-good", created_at=datetime(2026, 10, 14, 12, tzinfo=UTC))
    give(good, a_file(Row("ch_1")))
    planned = plan("beat")
    assert planned.compared == 1
    assert Report.objects.get(source=good).completeness == "complete"


def test_a_late_statement_lets_the_next_day_be_looked_at_again(
    clock: time_machine.Traveller,
) -> None:
    source = created(14)
    operation(source, "ch_late", occurred_at=datetime(2026, 10, 14, 21, tzinfo=UTC))
    clock.shift(ONE_DAY)
    after = report(source, day=DAY + ONE_DAY)
    assert told(after) == set()
    clock.shift(timedelta(hours=1))
    give(source, a_file())
    compare_onwards(source, DAY, by="mara")
    newest = Report.objects.get(day=DAY + ONE_DAY, current=True)
    assert told(newest) == {("ch_late", "unexpected", "")}


def test_what_came_late_is_settled_in_passing() -> None:
    source = created(14)
    report(source, Row("ch_1"))
    operation(source, "ch_1")
    assert plan("beat") == Planned(settled=1)
    assert open_ones(source) == set()


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2026, 3, 29), 23), (date(2026, 10, 14), 24), (date(2026, 10, 25), 25)],
)
def test_a_local_day_begins_and_ends_at_local_midnight(day: date, hours: int) -> None:
    assert hours_of(day, "Europe/Amsterdam") == hours
    start, _ = bounds(date(2026, 10, 14), "Europe/Amsterdam")
    assert start == datetime(2026, 10, 13, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (date(2026, 12, 23), True),
        (date(2026, 12, 25), False),
        (date(2026, 12, 26), False),
        (date(2026, 10, 17), False),
        (date(2026, 10, 18), False),
        (date(2026, 4, 3), False),
        (date(2026, 4, 6), False),
        (date(2026, 4, 7), True),
    ],
)
def test_no_statement_is_expected_on_a_target2_holiday(day: date, expected: bool) -> None:  # noqa: FBT001
    assert is_due(day, TARGET2) is expected
    assert is_due(day, {}) is True


def test_the_day_before_a_monday_is_friday_for_business_days() -> None:
    assert due_before(date(2026, 12, 28), TARGET2) == date(2026, 12, 24)
    assert due_before(date(2026, 12, 28), {}) == date(2026, 12, 27)


def test_a_holiday_raises_no_absence(clock: time_machine.Traveller) -> None:
    options = {**a_source("shape").statement_options, **TARGET2}
    a_source(
        "bank", created_at=datetime(2026, 12, 24, 12, tzinfo=UTC), statement_options=options
    )
    Source.objects.filter(slug="shape").update(statement_kinds=[])
    clock.move_to(datetime(2026, 12, 28, 20, tzinfo=UTC))
    plan("beat")
    assert set(Report.objects.values_list("day", flat=True)) == {date(2026, 12, 24)}
