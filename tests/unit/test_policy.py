"""How often, how long, when to give up: figures worked by hand, bounds for every input."""

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliability.errors import PermanentError, RetryLater, UseRunOnce
from reliability.policy import (
    BACKGROUND,
    USER_FACING,
    Backoff,
    Bury,
    Pace,
    Retry,
    RunOnce,
    after_crash,
    after_failure,
    worst_case,
)

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def seconds(*numbers: float) -> list[timedelta]:
    return [timedelta(seconds=number) for number in numbers]


def longest(low: float, high: float) -> float:
    return high


# The waits


def test_waits_double_from_200_ms_up_to_the_cap() -> None:
    policy = Backoff(first=timedelta(milliseconds=200), cap=30 * SECOND, attempts=11)
    assert policy.waits_max() == seconds(0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30)


def test_five_retries_from_one_second_wait_31_seconds_in_all() -> None:
    waits = Backoff(first=SECOND, cap=HOUR, attempts=6).waits_max()
    assert waits == seconds(1, 2, 4, 8, 16)
    assert sum(waits, timedelta(0)) == 31 * SECOND


def test_nine_attempts_from_half_a_second_wait_91_and_a_half_seconds() -> None:
    waits = Backoff(first=SECOND / 2, cap=30 * SECOND, attempts=9).waits_max()
    assert waits == seconds(0.5, 1, 2, 4, 8, 16, 30, 30)
    assert sum(waits, timedelta(0)) == timedelta(seconds=91.5)


spans = st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=36_500))


@given(
    first=spans,
    further=spans,
    factor=st.floats(1, 64),
    failures=st.integers(-(10**6), 10**6),
    seed=st.integers(),
)
def test_a_wait_is_never_negative_and_never_above_the_cap(
    first: timedelta, further: timedelta, factor: float, failures: int, seed: int
) -> None:
    policy = Backoff(first=first, cap=first + further, attempts=2, factor=factor)
    for drawn in (Random(seed).uniform, longest):
        assert timedelta(0) <= policy.wait(failures, drawn) <= policy.cap


def test_the_millionth_wait_is_the_cap() -> None:
    assert BACKGROUND.wait_max(10**6) == HOUR


def test_full_jitter_draws_the_whole_wait_and_no_jitter_draws_nothing() -> None:
    policy = Backoff(first=SECOND, cap=HOUR, attempts=6)
    asked: list[tuple[float, float]] = []

    def lowest(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    assert policy.wait(3, lowest) == timedelta(0)
    assert asked == [(0.0, 4.0)]
    assert replace(policy, jitter="none").wait(3, lowest) == 4 * SECOND


# What is no policy


def test_one_attempt_is_refused_by_its_right_name() -> None:
    with pytest.raises(UseRunOnce) as refused:
        Backoff(first=SECOND, cap=HOUR, attempts=1)
    assert str(refused.value) == (
        "Backoff(attempts=1) never retries: write policy=RunOnce(), whose failures go to a "
        "person at once."
    )


NO_SPAN = "first must be above zero and cap no shorter than first."


@pytest.mark.parametrize(
    ("first", "cap", "attempts", "factor", "why"),
    [
        (SECOND, HOUR, 0, 2.0, "attempts must be 2 to 1000, not 0."),
        (SECOND, HOUR, 1_001, 2.0, "attempts must be 2 to 1000, not 1001."),
        (timedelta(0), HOUR, 5, 2.0, NO_SPAN),
        (HOUR, SECOND, 5, 2.0, NO_SPAN),
        (SECOND, HOUR, 5, 0.9, "factor must be 1 to 64, not 0.9."),
        (SECOND, HOUR, 5, 64.1, "factor must be 1 to 64, not 64.1."),
        (SECOND, HOUR, 5, float("nan"), "factor must be 1 to 64, not nan."),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    first: timedelta, cap: timedelta, attempts: int, factor: float, why: str
) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its words are compared whole
        Backoff(first=first, cap=cap, attempts=attempts, factor=factor)
    assert str(refused.value) == f"Backoff: {why}"


@pytest.mark.parametrize(
    ("cap", "attempts", "factor", "waits"),
    [
        (SECOND, 4, 2.0, [1, 1, 1]),
        (HOUR, 4, 1, [1, 1, 1]),
        (HOUR, 4, 64, [1, 64, 3_600]),
        (HOUR, 2, 2.0, [1]),
    ],
    ids=["cap as first", "factor 1", "factor 64", "two attempts"],
)
def test_a_policy_at_the_edge_of_what_makes_sense_is_taken(
    cap: timedelta, attempts: int, factor: float, waits: list[float]
) -> None:
    policy = Backoff(first=SECOND, cap=cap, attempts=attempts, factor=factor)
    assert policy.waits_max() == seconds(*waits)


@pytest.mark.parametrize(
    ("window", "attempts"),
    [(31, 6), (30.9, 5), (3, 3), (0.5, 2), (10**9, 1_000)],
)
def test_filling_chooses_the_most_attempts_whose_waits_fit(
    window: float, attempts: int
) -> None:
    assert Backoff.filling(timedelta(seconds=window)).attempts == attempts


def test_the_shipped_policies_are_five_attempts_and_twelve() -> None:
    assert (USER_FACING.attempts, USER_FACING.user_facing) == (5, True)
    assert (BACKGROUND.attempts, BACKGROUND.user_facing) == (12, False)


def test_the_shipped_policies_wait_three_seconds_in_all_and_a_little_over_an_hour() -> None:
    assert USER_FACING.waits_max() == seconds(0.2, 0.4, 0.8, 1.6)
    assert BACKGROUND.waits_max() == seconds(2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048)
    assert (USER_FACING.cap, BACKGROUND.cap) == (30 * SECOND, HOUR)


# What follows an attempt


def after(policy: Backoff | RunOnce, failures: int, error: BaseException) -> Retry | Bury:
    return after_failure(policy, failures=failures, error=error, uniform=longest)


THREE = Backoff(first=SECOND, cap=3 * SECOND, attempts=3)


@pytest.mark.parametrize(
    ("failures", "error", "wait"),
    [
        (1, ValueError(), 1),
        (2, ValueError(), 2),
        (1, RetryLater(timedelta(seconds=2.5)), 2.5),
        (1, RetryLater(HOUR), 3),
        (1, RetryLater(-HOUR), 0),
    ],
)
def test_a_failure_with_attempts_left_is_tried_again(
    failures: int, error: BaseException, wait: float
) -> None:
    assert after(THREE, failures, error) == Retry(timedelta(seconds=wait))


@pytest.mark.parametrize(
    ("policy", "failures", "error", "reason"),
    [
        (THREE, 3, ValueError(), "3 of 3 attempts failed"),
        (THREE, 4, RetryLater(SECOND), "4 of 3 attempts failed"),
        (THREE, 1, PermanentError(), "permanent: the handler said that trying again"),
        (RunOnce(), 1, ValueError(), "run once: a person decides"),
        (RunOnce(), 1, RetryLater(SECOND), "run once: a person decides"),
    ],
)
def test_a_failure_that_must_not_be_repeated_is_buried_as_failed(
    policy: Backoff | RunOnce, failures: int, error: BaseException, reason: str
) -> None:
    verdict = after(policy, failures, error)
    assert isinstance(verdict, Bury)
    assert verdict.outcome == "failed"
    assert verdict.reason.startswith(reason)


@dataclass(frozen=True, kw_only=True)
class Crashed:
    intent: bool = False
    repeatable: bool = True
    crashes: int = 1
    crashes_alone: int = 0


@pytest.mark.parametrize(
    ("crashed", "reason"),
    [
        (Crashed(), ""),
        (Crashed(crashes=9, crashes_alone=2), ""),
        (Crashed(repeatable=False), ""),
        (Crashed(intent=True), ""),
        (Crashed(intent=True, repeatable=False), "the worker was lost after it began"),
        (
            Crashed(crashes=3, crashes_alone=3),
            "crash budget spent: its worker was lost 3 times",
        ),
        (Crashed(crashes=10), "crash budget spent: its worker was lost 10 times"),
        (Crashed(crashes=10, intent=True), "crash budget spent: its worker was lost 10 times"),
    ],
)
def test_a_crash_is_repeated_unless_the_effect_is_in_doubt_or_the_budget_spent(
    crashed: Crashed, reason: str
) -> None:
    verdict = after_crash(**asdict(crashed))
    if not reason:
        assert verdict == Retry(timedelta(0))
        return
    assert isinstance(verdict, Bury)
    assert verdict.outcome == "unknown"
    assert verdict.reason.startswith(reason)


# How long it can take

PACE = Pace(limit=10 * SECOND, lease=60 * SECOND, sweep=30 * SECOND, pickup=5 * SECOND)


def test_the_worst_case_is_the_sum_of_its_four_terms() -> None:
    worst = worst_case(Backoff(first=SECOND, cap=HOUR, attempts=6), PACE)
    assert worst.waits == 31 * SECOND
    assert worst.work == 60 * SECOND
    assert worst.crashes == 900 * SECOND, "10 times lease and sweep"
    assert worst.pickups == 80 * SECOND, "6 attempts and 10 crashes"
    assert worst.total == 1_071 * SECOND


def test_a_job_that_runs_once_waits_for_nothing_and_crashes_once() -> None:
    worst = worst_case(RunOnce(), PACE)
    assert worst.waits == timedelta(0)
    assert worst.total == (10 + 90 + 2 * 5) * SECOND
