"""Numbers, amounts, times and the week's chart as an operator reads them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from reliability.console import parts, week
from reliability.console.figures import Counted
from reliability.console.risk import listed

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minor", "currency", "exponent", "told"),
    [
        (-1840, "EUR", 2, "−€18.40"),
        (13_820_450, "eur", 2, "€138\u202f204.50"),
        (5, "GBP", 2, "£0.05"),
        (0, "USD", 2, "$0.00"),
        (500, "JPY", 0, "500\u00a0JPY"),
        (-1_234_567, "KWD", 3, "−1\u202f234.567\u00a0KWD"),
        (None, "EUR", 2, ""),
        (5, None, 2, ""),
    ],
)
def test_an_amount_is_written_with_the_providers_exponent(
    minor: int | None, currency: str | None, exponent: int, told: str
) -> None:
    assert parts.money(minor, currency, exponent) == told


@pytest.mark.parametrize(
    ("length", "told"),
    [
        (timedelta(0), "0 s"),
        (timedelta(milliseconds=212), "212 ms"),
        (timedelta(microseconds=3), "1 ms"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=3, minutes=25, seconds=59), "3 h 25 min"),
        (timedelta(days=1), "1 d"),
        (timedelta(days=2, hours=3), "2 d 3 h"),
        (timedelta(minutes=-5), "5 min"),
    ],
)
def test_a_duration_is_written_in_its_two_largest_units(length: timedelta, told: str) -> None:
    assert parts.span(length) == told


def test_a_time_says_how_long_ago_and_the_exact_moment_in_two_zones() -> None:
    at = NOON - timedelta(minutes=44)
    words = parts.ago(at, NOON)
    assert words == "44 min ago"
    assert parts.when(at, words, "Europe/Amsterdam") == (
        '<time datetime="2026-03-02T11:16:00Z" title="Mon 2 Mar 2026, 11:16:00 UTC · '
        '12:16:00 Europe/Amsterdam">44 min ago</time>'
    )
    assert parts.ago(NOON + timedelta(hours=2), NOON) == "in 2 h"
    assert parts.ago(None, NOON) == "never"


def test_a_clock_time_names_its_day_where_that_is_not_today() -> None:
    assert parts.clock(NOON, NOON) == "12:00:00"
    assert parts.clock(NOON - timedelta(days=1), NOON) == "1 Mar 12:00:00"


def test_a_count_that_stopped_says_that_there_are_more() -> None:
    assert parts.number(1318) == "1\u202f318"
    assert parts.number(Counted(10_000, more=True)) == "10\u202f000+"


def test_words_are_joined_as_a_sentence_does() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_the_weeks_line_is_counted_back_from_what_stands_open_now() -> None:
    days = [date(2026, 3, 1), date(2026, 3, 2)]
    told = week._standing(days, {days[0]: 5, days[1]: 7}, {days[1]: 2}, 10)
    assert [(day.came, day.left, day.open) for day in told] == [(5, 0, 5), (7, 2, 10)]


def test_the_chart_reaches_from_its_axis_to_the_highest_figure() -> None:
    days = [week.Day(date(2026, 3, n), came=0, left=0, open=0) for n in range(1, 7)]
    chart = week.chart([*days, week.Day(date(2026, 3, 7), came=50, left=10, open=40)], high=25)
    assert chart.grid == [(212.0, 0), (119.0, 25), (26.0, 50)]
    assert chart.high == (119.0, 25)
    assert chart.now.came_y == 26.0
    assert chart.now.came_height == 186.0
    assert chart.bars[0].came_height == 0.0


def test_an_empty_week_is_drawn_without_dividing_by_nothing() -> None:
    days = [week.Day(date(2026, 3, n), came=0, left=0, open=0) for n in range(1, 8)]
    assert week.chart(days).line.count(" ") == 6
