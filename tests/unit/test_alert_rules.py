"""The rule of an alert, one look at a time: no table, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reliability.alerts.rules import (
    Drop,
    Firing,
    Hold,
    Hush,
    Levels,
    Open,
    Pending,
    Quiet,
    Remind,
    Resolve,
    Seen,
    State,
    Stay,
    Tell,
    Verdict,
    decide,
)

NOON = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEVELS = Levels(high=25, low=10, hold=5 * MINUTE, remind=60 * MINUTE)


def after(state: State, verdict: Verdict, now: datetime) -> State:
    match verdict:
        case Hold(since):
            return Pending(since)
        case Open() | Tell():
            return Firing(now)
        case Remind():
            assert isinstance(state, Firing)
            return Firing(state.opened_at, now)
        case Resolve() | Drop():
            return Quiet()
        case Stay():
            return state


def watch(values: Sequence[int], levels: Levels = LEVELS) -> list[str]:
    """Look once a minute and return what was not silence, with its minute."""
    state: State = Quiet()
    heard = []
    for minute, value in enumerate(values):
        now = NOON + minute * MINUTE
        verdict = decide(levels, state, value=value, now=now)
        state = after(state, verdict, now)
        if not isinstance(verdict, Stay):
            heard.append(f"{minute} {type(verdict).__name__}")
    return heard


def test_an_alert_opens_once_its_value_stayed_high_for_the_hold() -> None:
    assert watch([25] * 30) == ["0 Hold", "5 Open"]


def test_one_below_the_high_level_is_quiet() -> None:
    assert watch([24] * 30) == []


def test_flapping_within_the_hold_never_opens_and_the_hold_starts_anew() -> None:
    assert watch([25, 25, 25, 25, 24, 25, 25, 25, 25, 24]) == [
        "0 Hold", "4 Drop", "5 Hold", "9 Drop",
    ]  # fmt: skip


def test_flapping_between_the_levels_is_one_alert() -> None:
    assert watch([25] * 6 + [11, 25, 11, 40, 24, 11]) == ["0 Hold", "5 Open"]


def test_an_alert_resolves_at_the_low_level_and_not_above_it() -> None:
    assert watch([25] * 6 + [11, 10, 10]) == ["0 Hold", "5 Open", "7 Resolve"]


def test_a_resolved_alert_has_to_hold_again() -> None:
    assert watch([25] * 6 + [10] + [25] * 6)[2:] == ["6 Resolve", "7 Hold", "12 Open"]


def test_reminders_come_at_the_interval_from_the_opening_and_then_from_each_other() -> None:
    assert watch([30] * 190) == ["0 Hold", "5 Open", "65 Remind", "125 Remind", "185 Remind"]


def test_without_an_interval_nobody_is_reminded() -> None:
    never = Levels(high=25, low=10, hold=5 * MINUTE, remind=timedelta(0))
    assert watch([30] * 190, never) == ["0 Hold", "5 Open"]


def test_without_a_hold_an_alert_opens_at_the_first_look() -> None:
    at_once = Levels(high=1, low=0, hold=timedelta(0), remind=timedelta(0))
    assert watch([0, 1, 1, 0, 2], at_once) == ["1 Open", "3 Resolve", "4 Open"]


@pytest.mark.parametrize("value", [25, 10_000])
def test_a_clock_that_went_back_opens_nothing(value: int) -> None:
    state = Pending(NOON)
    assert decide(LEVELS, state, value=value, now=NOON - 90 * MINUTE) == Stay()


UNTOLD = Firing(NOON, told=False)


@pytest.mark.parametrize(
    ("state", "hush", "verdict"),
    [
        (Quiet(), "draining", Hold(NOON)),
        (Pending(NOON - 5 * MINUTE), "draining", Stay()),
        (Pending(NOON - 5 * MINUTE), "silenced", Open()),
        (Pending(NOON - 5 * MINUTE), "muted", Open()),
        (Firing(NOON - 60 * MINUTE), "silenced", Stay()),
        (Firing(NOON - 60 * MINUTE), "muted", Stay()),
        (Firing(NOON - 60 * MINUTE), "draining", Stay()),
        (UNTOLD, "muted", Stay()),
        (UNTOLD, "", Tell()),
    ],
)
def test_what_is_hushed_opens_or_waits_and_is_told_when_nothing_hushes_it(
    state: State, hush: Hush, verdict: Verdict
) -> None:
    assert decide(LEVELS, state, value=30, now=NOON, hush=hush) == verdict


def test_without_a_hold_a_redrive_still_keeps_an_alert_from_opening() -> None:
    at_once = Levels(high=1, low=0, hold=timedelta(0), remind=timedelta(0))
    assert decide(at_once, Quiet(), value=9, now=NOON, hush="draining") == Stay()


@pytest.mark.parametrize("hush", ["silenced", "muted", "draining", ""])
def test_what_came_down_resolves_whatever_hushes_it(hush: Hush) -> None:
    assert decide(LEVELS, UNTOLD, value=10, now=NOON, hush=hush) == Resolve()


@pytest.mark.parametrize(
    ("seen", "hush"),
    [
        (Seen(value=30, unmuted=30, undrained=30), ""),
        (Seen(value=30, unmuted=30, undrained=30, silenced=True), "silenced"),
        (Seen(value=30, unmuted=24, undrained=30), "muted"),
        (Seen(value=30, unmuted=25, undrained=30), ""),
        (Seen(value=30, unmuted=30, undrained=24), "draining"),
        (Seen(value=30, unmuted=24, undrained=24), "draining"),
        (Seen(value=20, unmuted=20, undrained=20), ""),
        (Seen(value=20, unmuted=19, undrained=20), "muted"),
        (Seen(value=0, unmuted=0, undrained=0), ""),
    ],
)
def test_what_is_left_without_the_muted_and_the_drained_decides(
    seen: Seen, hush: Hush
) -> None:
    assert seen.hush(LEVELS) == hush
