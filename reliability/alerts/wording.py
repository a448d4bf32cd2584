"""The words of a mail: plain, in one line each, and of nothing but counts, names and times."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reliability.currencies import money
from reliability.models import AlertRule

Measure = AlertRule.Measure
NAME_MAX = 120
IN_SECONDS = frozenset(
    {
        Measure.OLDEST_LETTER,
        Measure.SWEEP_LATE,
        Measure.READY,
        Measure.BEAT,
        Measure.SNAPSHOT,
    }
)
SAID: dict[Measure, tuple[str, str]] = {
    Measure.OPEN_LETTERS: ("{n} dead letter{s} open in {scope}", ""),
    Measure.OLDEST_LETTER: (
        "A dead letter has been waiting for {age} in {scope}",
        "No dead letter is waiting in {scope}",
    ),
    Measure.MONEY: ("Dead letters worth {n} in major units are open in {scope}", ""),
    Measure.INFLOW: ("{n} open dead letter{s} of the last hour in {scope}", ""),
    Measure.SWEEP_LATE: ("The last good sweep ended {age} ago", ""),
    Measure.BEAT: ("Beat last ran something {age} ago", ""),
    Measure.READY: (
        "A due job has been waiting for {age} in {scope}",
        "No due job waits too long in {scope}",
    ),
    Measure.SNAPSHOT: (
        "A session has held a snapshot of the database for {age}",
        "No session holds an old snapshot of the database",
    ),
    Measure.STATEMENT: ("{n} statement{s} absent, incomplete or out of reach for {scope}", ""),
    Measure.CONSERVATION: ("{n} accepted event{s} without a job in {scope}", ""),
}
"""What is said of a value, and of none where that reads otherwise."""
STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def one_line(name: str) -> str:
    """Return a name that can neither end a header, forge a line nor become a link."""
    shown = "".join(c if not unicodedata.category(c).startswith("C") else " " for c in name)
    return " ".join(shown.replace("://", " ").split())[:NAME_MAX]


def spoken(length: timedelta) -> str:
    """Say a duration in its two largest units: ``2 h 31 min``."""
    left, parts = max(0, int(length.total_seconds())), list[str]()
    for seconds, unit in STEPS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def at(moment: datetime, zone: str) -> str:
    """Say a time in the source's zone, where it is known and another, and in UTC."""
    utc = moment.astimezone(ZoneInfo("UTC"))
    try:
        local = moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        local = utc
    if local.utcoffset() == utc.utcoffset():
        return f"{utc:%a} {utc.day} {utc:%b %Y %H:%M} UTC"
    return f"{local:%a} {local.day} {local:%b %Y %H:%M} {zone}, {utc:%H:%M} UTC"


def sums(amounts: Iterable[tuple[int | None, str, int | None]]) -> str:
    """Say minor units per currency, never added up: ``EUR 345.50 and GBP 20.00``."""
    said = [
        money(abs(minor), unit.upper(), places or 0)
        for minor, unit, places in amounts
        if minor
    ]
    return " and ".join(said)


def headline(measure: str, value: int, scope: str) -> str:
    """Say in one sentence what stands where."""
    said, said_of_none = SAID[Measure(measure)]
    words = said if value or not said_of_none else said_of_none
    age = spoken(timedelta(seconds=value)) if measure in IN_SECONDS else ""
    return words.format(n=value, s=_s(value), scope=scope, age=age)


def level(measure: str, value: int) -> str:
    """Say a watermark in the measure's unit."""
    return spoken(timedelta(seconds=value)) if measure in IN_SECONDS else str(value)


def why_open(rule: AlertRule, value: int) -> str:
    """Say which level was reached: ``over 25 for 5 min``."""
    reached = f"{'over' if value > rule.high else 'at'} {level(rule.measure, rule.high)}"
    return f"{reached} for {spoken(hold)}" if (hold := _hold(rule)) else reached


def the_rule(rule: AlertRule) -> str:
    """Say when a rule opens and closes."""
    held = f", held for {spoken(hold)}," if (hold := _hold(rule)) else ""
    opens, closes = level(rule.measure, rule.high), level(rule.measure, rule.low)
    return f"The rule opens at {opens}{held} and closes at {closes}."


def _hold(rule: AlertRule) -> timedelta:
    return timedelta(seconds=rule.hold_seconds)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
