"""How a redrive ramps up, keeps its rate and stops itself; figures written by hand."""

from datetime import timedelta

import pytest

from reliability.work.redrive.pace import (
    Ask,
    End,
    Pace,
    Release,
    Standing,
    Stop,
    Wait,
    allowance,
    next_move,
    room,
)

RAMP = Pace(how="ramp", rate=5.0, stop_percent=20, stop_after=10)
STEADY = Pace(how="steady", rate=5.0, stop_percent=20, stop_after=10)
ONE = Pace(how="one", rate=5.0, stop_percent=20, stop_after=10)


def at(
    pending: int = 100, running: int = 0, retrying: int = 0, *, good: int = 0, bad: int = 0
) -> Standing:
    return Standing(
        pending=pending, running=running, retrying=retrying, succeeded=good, failing=bad
    )


def test_a_ramp_releases_one_then_ten_then_its_rate_each_after_the_step_before_settled() -> (
    None
):
    assert next_move(RAMP, at(), step=0, budget=7) == Release(1, 1)
    assert next_move(RAMP, at(99, running=1), step=1, budget=7) == Wait()
    assert next_move(RAMP, at(99, good=1), step=1, budget=7) == Release(10, 2)
    assert next_move(RAMP, at(89, running=2, good=9), step=2, budget=7) == Wait()
    assert next_move(RAMP, at(89, good=11), step=2, budget=7) == Release(7, 3)
    assert next_move(RAMP, at(82, running=7, good=11), step=3, budget=7) == Release(7, 3)


def test_a_failure_of_the_very_first_letter_stops_a_ramp() -> None:
    assert next_move(RAMP, at(99, bad=1), step=1, budget=7) == Stop(
        "the first letter failed again"
    )


def test_a_first_letter_that_is_being_retried_counts_as_failed() -> None:
    assert isinstance(next_move(RAMP, at(99, 1, 1, bad=1), step=1, budget=7), Stop)


@pytest.mark.parametrize(
    ("good", "bad", "stops"), [(8, 2, False), (7, 3, True), (6, 3, False), (79, 21, True)]
)
def test_it_stops_above_twenty_percent_of_at_least_ten_results(
    good: int, bad: int, *, stops: bool
) -> None:
    move = next_move(STEADY, at(good=good, bad=bad), step=0, budget=1)
    assert isinstance(move, Stop) == stops


def test_the_stop_names_its_figures() -> None:
    move = next_move(STEADY, at(good=7, bad=3), step=0, budget=1)
    assert move == Stop("3 of 10 results failed again, more than 20 %")


def test_only_one_asks_its_starter_after_the_first_letter() -> None:
    assert next_move(ONE, at(), step=0, budget=7) == Release(1, 1)
    assert next_move(ONE, at(99, running=1), step=1, budget=7) == Wait()
    assert isinstance(next_move(ONE, at(99, good=1), step=1, budget=7), Ask)


def test_a_steady_pace_goes_at_its_rate_from_the_first_letter_and_waits_without_budget() -> (
    None
):
    assert next_move(STEADY, at(), step=0, budget=7) == Release(7, 3)
    assert next_move(STEADY, at(), step=3, budget=0) == Wait()


def test_it_ends_when_nothing_is_pending_and_the_last_result_is_in() -> None:
    assert next_move(RAMP, at(0, running=1), step=3, budget=7) == Wait()
    assert next_move(RAMP, at(0, good=3), step=3, budget=7) == End()


def test_the_rate_earns_letters_by_time_and_a_long_silence_earns_no_flood() -> None:
    longest = timedelta(seconds=6)
    assert allowance(5.0, timedelta(seconds=2), longest=longest) == 10
    assert allowance(5.0, timedelta(hours=1), longest=longest) == 30
    assert allowance(0.1, timedelta(seconds=9), longest=longest) == 0
    assert allowance(0.1, timedelta(seconds=10), longest=longest) == 1
    assert allowance(5.0, timedelta(seconds=-3), longest=longest) == 0


def test_no_more_than_half_a_minute_of_its_rate_is_on_its_way_without_a_result() -> None:
    half_a_minute = timedelta(seconds=30)
    assert room(5.0, at(running=100), unsettled=half_a_minute) == 50
    assert room(5.0, at(running=150), unsettled=half_a_minute) == 0
    assert room(5.0, at(running=150, retrying=150), unsettled=half_a_minute) == 150
    assert room(0.1, at(), unsettled=half_a_minute) == 10


@pytest.mark.parametrize(
    "wrong",
    [
        Pace(rate=0.0, stop_percent=20, stop_after=10),
        Pace(rate=float("nan"), stop_percent=20, stop_after=10),
        Pace(rate=5000.0, stop_percent=20, stop_after=10),
        Pace(rate=1.0, stop_percent=0, stop_after=10),
        Pace(rate=1.0, stop_percent=101, stop_after=10),
        Pace(rate=1.0, stop_percent=20, stop_after=0),
        Pace(how="flood", rate=1.0, stop_percent=20, stop_after=10),  # type: ignore[arg-type]
    ],
)
def test_a_pace_out_of_bounds_is_named(wrong: Pace) -> None:
    assert wrong.problem(1000.0)
    assert not RAMP.problem(1000.0)
