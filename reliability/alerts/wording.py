"""The words of a mail: plain, in one line each, and of nothing but counts, names and times."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reliability.models import AlertRule

Measure = AlertRule.Measure
NAME_MAX = 120
IN_SECONDS = {Measure.OLDEST_LETTER, Measure.SWEEP_LATE}
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


def headline(measure: str, value: int, scope: str) -> str:
    """Say in one sentence what stands where."""
    match measure:
        case Measure.OLDEST_LETTER | Measure.SWEEP_LATE:
            return _headline_of_age(measure, value, scope)
        case Measure.OPEN_LETTERS:
            return f"{value} dead letter{_s(value)} open in {scope}"
        case Measure.STATEMENT:
            return f"{value} statement{_s(value)} absent or incomplete for {scope}"
        case _:
            return f"{value} accepted event{_s(value)} without a job in {scope}"


def _headline_of_age(measure: str, value: int, scope: str) -> str:
    age = spoken(timedelta(seconds=value))
    if measure == Measure.SWEEP_LATE:
        return f"The last good sweep ended {age} ago"
    if value == 0:
        return f"No dead letter is waiting in {scope}"
    return f"A dead letter has been waiting for {age} in {scope}"


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
