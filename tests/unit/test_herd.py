"""The calculators' figures, each known from elsewhere: by hand, or from the closed form."""

import io
import json
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reliability import handlers
from reliability.handlers import (
    DedupeWindow,
    Event,
    LocalTransaction,
    ProviderHeader,
    Sink,
    UniqueConstraint,
)
from reliability.management.printing import amount, cell
from reliability.policy import Backoff, Policy, RunOnce
from reliability.work.herd import Stampede, mean_stampede, stampede
from reliability.work.limits import in_words

FIVE_RETURNS = Backoff(
    first=timedelta(milliseconds=200), cap=timedelta(seconds=30), attempts=6
)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.mark.parametrize("clients", [1, 37, 200, 1_000])
def test_without_jitter_the_whole_herd_returns_in_each_of_five_windows(clients: int) -> None:
    plain = replace(FIVE_RETURNS, jitter="none")
    found = stampede(plain, clients=clients, uniform=Random(1).uniform)
    assert found == Stampede(clients, 5)


def test_full_jitter_lowers_the_peak_by_three_tenths_and_spreads_over_fifty_windows() -> None:
    found = mean_stampede(FIVE_RETURNS, clients=200, seeds=range(100))
    # Expected in the second bucket: 200 x (1/2 + 3/16 + 1/64 + ...), so some 141.
    assert 130 < found.peak < 152
    assert 48 < found.windows < 60


def test_a_seed_gives_the_same_herd_again() -> None:
    assert run_json("herd", "--seed", "7") == run_json("herd", "--seed", "7")
    assert run_json("herd", "--seed", "7") != run_json("herd", "--seed", "8")


def test_the_herd_is_told_honestly() -> None:
    said = run("herd", "--clients", "200", "--attempts", "5")
    assert "Jitter lowers the peak by 29 %; what it buys is" in said
    assert "windows instead of 5." in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--clients", "0"], "at least 1 client"),
        (["--attempts", "0"], "1 to 999 attempts"),
        (["--clients", "1000000", "--attempts", "6"], "5,000,000 returns"),
    ],
)
def test_a_herd_too_large_or_too_small_is_refused(arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        run("herd", *arguments)


def test_five_retries_from_one_second_take_31_seconds_in_all() -> None:
    found = run_json("schedule", "--first", "1", "--retries", "5")
    assert found == {
        "waits_seconds": [1, 2, 4, 8, 16],
        "total_seconds": 31,
        "retries": 5,
        "retries_each_second": 31,
    }
    said = run("schedule", "--first", "1", "--retries", "5")
    assert "31 s in all" in said
    assert "a retry each second would be 31: 16.1 % of that load" in said


def test_a_factor_and_a_cap_shape_the_schedule() -> None:
    found = run_json("schedule", "--first=1", "--retries=4", "--factor=3", "--cap=10")
    assert found["waits_seconds"] == [1, 3, 9, 10]


def test_nine_attempts_from_half_a_second_wait_91_and_a_half_seconds() -> None:
    [row] = run_json("limits", "--first", "0.5", "--cap", "30", "--attempts", "9")
    assert row["waits"] == 91.5
    # 9 x 180 s; 10 x (300 + 120) s; 19 pickups of 60 + 120 s; and all of it.
    assert (row["work"], row["crashes"], row["pickups"]) == (1620, 4200, 3420)
    assert row["S"] == 91.5 + 1620 + 4200 + 3420
    assert "91.5 s" in run("limits", "--first", "0.5", "--cap", "30", "--attempts", "9")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["schedule", "--retries", "0"], "2 to 1000 attempts"),
        (["schedule", "--first", "0"], "above 0"),
        (["schedule", "--first", "nan"], "above 0"),
        (["schedule", "--factor", "0.5"], "factor must be 1 to 64"),
        (["limits", "--attempts", "9"], "both --first and --attempts"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_one_line(
    arguments: list[str], why: str
) -> None:
    with pytest.raises(CommandError, match=why):
        run(*arguments)


HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TWICE = Backoff(first=HOUR, cap=HOUR, attempts=2)


@pytest.mark.parametrize(
    ("sink", "policy", "risk"),
    [
        (LocalTransaction(), TWICE, "none: the database refuses a repeat"),
        (UniqueConstraint("auth.Group", "name"), TWICE, "none: the database refuses a repeat"),
        (ProviderHeader(window=DAY), TWICE, "none within its window"),
        (ProviderHeader(window=HOUR), TWICE, "refused: it has retries and lacks a window"),
        (DedupeWindow(window=DAY, record="before"), TWICE, "may be missing"),
        (DedupeWindow(window=DAY, record="after"), TWICE, "may repeat"),
        (None, TWICE, "refused: it has retries and lacks a sink"),
        (None, RunOnce(), "may be missing: runs once, then a person decides"),
    ],
)
def test_limits_says_in_words_what_is_at_risk(
    sink: Sink | None, policy: Policy, risk: str
) -> None:
    handlers.handler("limited", sink=sink, policy=policy)(_nothing)
    try:
        [row] = [row for row in run_json("limits") if row["kind"] == "limited"]
        said = run("limits")
    finally:
        handlers.unregister("limited")
    assert row["risk"].startswith(risk)
    assert risk in said


def test_a_kind_without_a_policy_has_a_row_for_each_way_in() -> None:
    handlers.handler("either", sink=LocalTransaction())(_nothing)
    try:
        rows = {row["kind"]: row["attempts"] for row in run_json("limits")}
    finally:
        handlers.unregister("either")
    assert (rows["either (webhook)"], rows["either (enqueued)"]) == (12, 5)


def _nothing(event: Event) -> None:
    return None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "0.5 s"), (91.5, "91.5 s"), (435, "7 min 15 s"), (7_800, "2 h 10 min"), (90_000, "1 d 1 h")],
)  # fmt: skip
def test_durations_are_written_as_people_say_them(seconds: float, words: str) -> None:
    assert in_words(timedelta(seconds=seconds)) == words


def test_amounts_stand_in_the_major_unit_of_their_currency() -> None:
    assert amount(1999, "EUR", 2) == "19.99 EUR"
    assert amount(-5, "EUR", 2) == "-0.05 EUR"
    assert amount(1999, "JPY", 0) == "1999 JPY"
    assert amount(None, None, None) == ""


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    assert cell("evt\x1b[2J\n") == "evt�[2J�"
