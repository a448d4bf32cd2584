"""A provider's day: local midnights as instants, and on which days a statement is due."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import holidays

ONE_DAY = timedelta(days=1)
DAILY, BUSINESS_DAYS = "daily", "business days"
DAYS_WITHOUT_STATEMENT_MAX = 10
SATURDAY = 5


def bounds(day: date, zone: str) -> tuple[datetime, datetime]:
    """Return the instants at which a local day begins and ends: 23, 24 or 25 hours apart."""
    return _midnight(day, zone), _midnight(day + ONE_DAY, zone)


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def day_of(at: datetime, zone: str) -> date:
    """Return the local day an instant lies in."""
    return at.astimezone(ZoneInfo(zone)).date()


def hours_of(day: date, zone: str) -> int:
    """Return how many hours a local day has."""
    start, end = bounds(day, zone)
    return round((end - start) / timedelta(hours=1))


def is_due(day: date, options: Mapping[str, object]) -> bool:
    """Say whether a statement is expected for a day.

    ``cadence`` is ``daily`` or ``business days``; ``holidays`` names a financial market of the
    package ``holidays``, such as ``ECB`` (TARGET2) or ``NYSE``, closed on its own days.
    """
    if options.get("cadence", DAILY) != BUSINESS_DAYS:
        return True
    market = str(options.get("holidays", ""))
    return day.weekday() < SATURDAY and not (market and day in _calendar(market, day.year))


@lru_cache(maxsize=64)
def _calendar(market: str, year: int) -> Mapping[date, str]:
    found: Mapping[date, str] = holidays.financial_holidays(market, years=year)
    return found


def due_before(day: date, options: Mapping[str, object]) -> date:
    """Return the newest day before ``day`` for which a statement is expected."""
    before = day - ONE_DAY
    while not is_due(before, options) and day - before < DAYS_WITHOUT_STATEMENT_MAX * ONE_DAY:
        before -= ONE_DAY
    return before
