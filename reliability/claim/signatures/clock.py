"""Reads the times providers write: Unix seconds and ISO 8601, nothing looser."""

import re
from datetime import UTC, datetime

_SECONDS = re.compile(r"[0-9]{1,11}")
_SECONDS_MAX = 99_999_999_999


def unix_time(text: str) -> datetime | None:
    """Read whole Unix seconds in plain digits; ``None`` for a sign, a fraction or a space."""
    return datetime.fromtimestamp(int(text), UTC) if _SECONDS.fullmatch(text) else None


def instant(value: object) -> datetime | None:
    """Read a body's time: Unix seconds as a number, or ISO 8601 text with its offset."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return datetime.fromtimestamp(value, UTC) if 0 <= value <= _SECONDS_MAX else None
    return _iso(value) if isinstance(value, str) else None


def _iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
