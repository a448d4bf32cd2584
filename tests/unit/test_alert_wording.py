"""The words of an alert's mail: true numbers, one line, no links of others."""

from datetime import UTC, datetime, timedelta

import pytest

from reliability.alerts.wording import at, headline, one_line, spoken


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("stripe-live", "stripe-live"),
        ("Zürich ☂", "Zürich ☂"),
        ("a\r\nBcc: x@evil.example", "a Bcc: x@evil.example"),
        ("a\u2028b\x00c\u202ed", "a b c d"),
        ("https://evil.example/x", "https evil.example/x"),
        ("x" * 500, "x" * 120),
    ],
)
def test_a_name_stays_on_one_line_and_is_no_link(name: str, shown: str) -> None:
    assert one_line(name) == shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (45, "45 s"), (300, "5 min"), (9060, "2 h 31 min"), (86_400, "1 d"),
     (93_784, "1 d 2 h"), (-5, "0 s")],
)  # fmt: skip
def test_a_duration_is_said_in_its_two_largest_units(seconds: int, said: str) -> None:
    assert spoken(timedelta(seconds=seconds)) == said


def test_a_time_is_said_in_the_zone_of_the_source_and_in_utc() -> None:
    moment = datetime(2026, 10, 2, 9, 20, tzinfo=UTC)
    assert at(moment, "Europe/Amsterdam") == "Fri 2 Oct 2026 11:20 Europe/Amsterdam, 09:20 UTC"
    assert at(moment, "UTC") == "Fri 2 Oct 2026 09:20 UTC"
    assert at(moment, "No/Such_Zone") == "Fri 2 Oct 2026 09:20 UTC"


@pytest.mark.parametrize(
    ("measure", "value", "said"),
    [
        ("open letters", 40, "40 dead letters open in s"),
        ("open letters", 1, "1 dead letter open in s"),
        ("oldest letter", 90_000, "A dead letter has been waiting for 1 d 1 h in s"),
        ("oldest letter", 0, "No dead letter is waiting in s"),
        ("sweep late", 420, "The last good sweep ended 7 min ago"),
        ("statement", 2, "2 statements absent, incomplete or out of reach for s"),
        ("conservation", 1, "1 accepted event without a job in s"),
    ],
)
def test_a_headline_says_what_stands_where(measure: str, value: int, said: str) -> None:
    assert headline(measure, value, "s") == said
