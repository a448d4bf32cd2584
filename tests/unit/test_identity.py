"""Keys of scheduled work: labels of periods on a subject's own clocks."""

from datetime import UTC, datetime

import pytest

from reliability.claim.identity import (
    Day,
    Every,
    Hour,
    Month,
    Week,
    labels_between,
    period_key,
)

BERLIN, KOLKATA, LORD_HOWE = "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("every", "moment", "zone", "key"),
    [
        (Month, "2026-10-31T22:59Z", BERLIN, '["cus_1","2026-10"]'),
        (Month, "2026-10-31T23:00Z", BERLIN, '["cus_1","2026-11"]'),
        (Month, "2026-10-31T23:00Z", "UTC", '["cus_1","2026-10"]'),
        (Week, "2026-10-05T00:00Z", "UTC", '["cus_1","2026-W41"]'),
        (Week, "2027-01-01T00:00Z", "UTC", '["cus_1","2026-W53"]'),
        (Week, "2024-12-30T00:00Z", "UTC", '["cus_1","2025-W01"]'),
        (Day, "2026-10-24T22:00Z", BERLIN, '["cus_1","2026-10-25"]'),
        (Hour, "2026-10-25T00:30Z", BERLIN, '["cus_1","2026-10-25T02+02:00"]'),
        (Hour, "2026-10-25T01:30Z", BERLIN, '["cus_1","2026-10-25T02+01:00"]'),
        (Hour, "2026-10-25T01:30Z", KOLKATA, '["cus_1","2026-10-25T07+05:30"]'),
    ],
)
def test_a_period_is_named_on_the_subjects_clocks(
    every: Every, moment: str, zone: str, key: str
) -> None:
    assert period_key("cus_1", every, at=at(moment), zone=zone) == key


def test_the_time_within_a_period_does_not_matter() -> None:
    keys = {
        period_key("cus_1", Month, at=datetime(2026, 10, day, hour, tzinfo=UTC))
        for day in range(1, 32)
        for hour in (0, 23)
    }
    assert keys == {'["cus_1","2026-10"]'}


def test_the_repeated_hour_of_autumn_is_two_and_the_lost_one_of_spring_is_none() -> None:
    autumn = labels_between(
        Hour, at("2026-10-24T23:30Z"), at("2026-10-25T02:10Z"), zone=BERLIN
    )
    assert autumn == [
        "2026-10-25T01+02:00",
        "2026-10-25T02+02:00",
        "2026-10-25T02+01:00",
        "2026-10-25T03+01:00",
    ]
    spring = labels_between(
        Hour, at("2026-03-29T00:30Z"), at("2026-03-29T01:30Z"), zone=BERLIN
    )
    assert spring == ["2026-03-29T01+01:00", "2026-03-29T03+02:00"]


def test_a_clock_that_changes_by_half_an_hour_loses_no_hour() -> None:
    # Lord Howe goes back from 02:00 (+11:00) to 01:30 (+10:30) on 5 April 2026, 15:00 UTC the day before.
    hours = labels_between(
        Hour, at("2026-04-04T14:10Z"), at("2026-04-04T16:00Z"), zone=LORD_HOWE
    )
    assert hours == ["2026-04-05T01+11:00", "2026-04-05T01+10:30", "2026-04-05T02+10:30"]


def test_days_over_a_clock_change_are_each_there_once() -> None:
    days = labels_between(Day, at("2026-10-24T22:30Z"), at("2026-10-26T22:59Z"), zone=BERLIN)
    assert days == ["2026-10-25", "2026-10-26"]


def test_days_far_from_greenwich_are_the_subjects_own() -> None:
    # Fourteen hours ahead: a day of theirs begins at ten in the morning of the day before in UTC.
    days = labels_between(
        Day, at("2026-10-24T09:00Z"), at("2026-10-25T11:00Z"), zone="Pacific/Kiritimati"
    )
    assert days == ["2026-10-24", "2026-10-25", "2026-10-26"]


def test_months_over_a_year_are_twelve() -> None:
    months = labels_between(
        Month, at("2026-01-31T12:00Z"), at("2026-12-01T12:00Z"), zone="UTC"
    )
    assert (len(months), months[0], months[-1]) == (12, "2026-01", "2026-12")


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone") as refused:
        period_key("cus_1", Month, at=datetime(2026, 10, 1))  # noqa: DTZ001
    assert str(refused.value) == (
        "period_key: at must name its zone, or the period is a guess."
    )


def test_a_key_without_a_time_and_a_zone_is_of_now_in_utc() -> None:
    before = datetime.now(UTC)
    key = period_key("cus_1", Day)
    days = {f"{moment:%Y-%m-%d}" for moment in (before, datetime.now(UTC))}
    assert key in {f'["cus_1","{day}"]' for day in days}


def test_a_subject_is_written_as_it_is() -> None:
    assert period_key("Zoë", Month, at=at("2026-10-01T00:00Z")) == '["Zoë","2026-10"]'
