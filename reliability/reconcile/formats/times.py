"""Instants and days as providers write them; a zone that is not known is refused."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reliability.reconcile.formats.base import RowRefused, StatementError

#: Labels as reports print them, with their fixed offset in hours. A label names one offset, not
#: a region: CEST in a January row is still UTC+2. IST, CST and AST name several: refused.
LABEL_HOURS = {
    "UTC": 0.0, "GMT": 0.0, "Z": 0.0, "WET": 0.0, "WEST": 1.0, "BST": 1.0, "CET": 1.0, "CEST": 2.0,
    "EET": 2.0, "EEST": 3.0, "MSK": 3.0, "SGT": 8.0, "HKT": 8.0, "JST": 9.0, "KST": 9.0,
    "AEST": 10.0, "AEDT": 11.0, "ACST": 9.5, "ACDT": 10.5, "AWST": 8.0, "NZST": 12.0,
    "NZDT": 13.0, "EST": -5.0, "EDT": -4.0, "CDT": -5.0, "MST": -7.0, "MDT": -6.0, "PST": -8.0,
    "PDT": -7.0, "AKST": -9.0, "AKDT": -8.0, "HST": -10.0, "BRT": -3.0, "ART": -3.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant or a calendar day, whichever the file states; the other stays ``None``."""

    at: datetime | None = None
    day: date | None = None


NEVER = Moment()


@lru_cache(maxsize=256)
def zone_of(name: str) -> ZoneInfo:
    """Open the source's own IANA zone; a name that does not exist is a set-up error."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        rule = f"zone {name!r} is not an IANA zone"
        raise StatementError(0, rule, "name one such as Europe/Amsterdam") from None


@lru_cache(maxsize=256)
def label_offset(label: str) -> timezone:
    """Map a printed zone label to its fixed offset; an unknown label refuses the row."""
    hours = LABEL_HOURS.get(label.strip().upper())
    if hours is None:
        raise RowRefused(f"zone label {label!r} is not known")
    return timezone(timedelta(hours=hours), label)


def localised(clock: datetime, zone: ZoneInfo | timezone) -> datetime:
    """Make a wall-clock time an instant in UTC.

    In the hour that repeats in autumn the first pass is taken (both are the same day); a
    time that never was, in the spring gap, refuses the row.
    """
    if clock.tzinfo is not None:
        return clock.astimezone(UTC)
    instant = clock.replace(tzinfo=zone).astimezone(UTC)
    if isinstance(zone, ZoneInfo) and instant.astimezone(zone).replace(tzinfo=None) != clock:
        raise RowRefused(f"{clock} did not exist in {zone.key}: the clock jumped over it")
    return instant


@lru_cache(maxsize=8192)
def moment(text: str, pattern: str, zone: ZoneInfo | timezone) -> Moment:
    """Read a day or an instant; ``pattern`` is ``iso`` or one of ``strptime``.

    A text without a time of day stays a day. Blank text is no moment. Some thousand answers are
    remembered: a file's rows share days and seconds.
    """
    if not text or text.isspace():
        return NEVER
    try:
        if pattern == "iso":
            return _iso(text.strip(), zone)
        clock = datetime.strptime(text.strip(), pattern)  # noqa: DTZ007 - localised below
    except ValueError:
        raise RowRefused(f"{text!r} is not a date or time in the form {pattern!r}") from None
    if "%H" in pattern or "%I" in pattern:
        return Moment(at=localised(clock, zone))
    return Moment(day=clock.date())


def _iso(text: str, zone: ZoneInfo | timezone) -> Moment:
    if len(text) == len("2026-10-25"):
        return Moment(day=date.fromisoformat(text))
    return Moment(at=localised(datetime.fromisoformat(text), zone))


def epoch(seconds: object) -> datetime:
    """Turn whole seconds since 1970 into an instant in UTC."""
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise RowRefused(f"{seconds!r} is not a time in whole epoch seconds")
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise RowRefused(f"{seconds!r} is outside the calendar") from None
