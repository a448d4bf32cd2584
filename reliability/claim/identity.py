"""Keys of scheduled work: a subject and the period it is done for, never the time it fired."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

HOUR_STEP = timedelta(minutes=15)
"""Zones change their clocks by hours, half hours or quarters: no local hour is stepped over."""


class Every(StrEnum):
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    HOUR = "hour"


Month, Week, Day, Hour = Every.MONTH, Every.WEEK, Every.DAY, Every.HOUR


def period_key(
    subject: str, every: Every, *, at: datetime | None = None, zone: str = "UTC"
) -> str:
    """Return the key of ``subject``'s work for the period around ``at``: JSON [subject, label].

    The label is in ``zone``, where the subject's months begin: ``2026-10``, ``2026-W41`` (ISO
    8601), ``2026-10-25``, ``2026-10-25T02+02:00``. ``at`` is aware; without it, it is now.
    """
    moment = datetime.now(UTC) if at is None else at
    if moment.tzinfo is None:
        raise ValueError("period_key: at must name its zone, or the period is a guess.")
    return period_key_of(subject, label(every, moment, zone))


def period_key_of(subject: str, period: str) -> str:
    """Return the key of ``subject``'s work for the period of that label."""
    return json.dumps([subject, period], separators=(",", ":"), ensure_ascii=False)


def label(every: Every, at: datetime, zone: str) -> str:
    """Name the period around ``at`` on the clocks of ``zone``."""
    local = at.astimezone(ZoneInfo(zone))
    if every is Every.HOUR:
        offset = local.isoformat(timespec="minutes")[16:]
        return f"{local:%Y-%m-%dT%H}{offset}"
    return _of_a_date(every, local.date())


def _of_a_date(every: Every, day: date) -> str:
    match every:
        case Every.MONTH:
            return f"{day:%Y-%m}"
        case Every.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year}-W{week:02}"
        case _:
            return day.isoformat()


def labels_between(every: Every, since: datetime, until: datetime, *, zone: str) -> list[str]:
    """Return the labels of all periods from the one around ``since`` to the one around ``until``.

    In order, each once: a local hour that a clock change repeats is two, one it skips is none.
    """
    moments = _hours(since, until) if every is Every.HOUR else _days(since, until, zone)
    return list(dict.fromkeys(label(every, moment, zone) for moment in moments))


def _hours(since: datetime, until: datetime) -> Iterator[datetime]:
    moment = since.astimezone(UTC)
    while moment < until:
        yield moment
        moment += HOUR_STEP
    yield until


def _days(since: datetime, until: datetime, zone: str) -> Iterator[datetime]:
    """Yield a moment within each local day: noon, which no clock change takes away."""
    place = ZoneInfo(zone)
    day, last = since.astimezone(place).date(), until.astimezone(place).date()
    while day <= last:
        yield datetime(day.year, day.month, day.day, 12, tzinfo=place)
        day += timedelta(days=1)
