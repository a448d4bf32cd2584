"""What a destination's answer means: done, try again, or a matter for a person."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal

Rule = Literal["done", "retry", "bury"]

TRY_AGAIN = frozenset({408, 409, 425, 429})
OVERLOADED = 429
SECONDS_MAX = 10_000_000


def rule_of(status: int, rules: Mapping[str, str]) -> Rule:
    """Return what to do about a status; the destination's own rule comes first.

    A redirect is buried: following it would leave the address that was checked.
    """
    match rules.get(str(status)):
        case "done":
            return "done"
        case "retry":
            return "retry"
        case "bury":
            return "bury"
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP: success
        return "done"
    return "retry" if status in TRY_AGAIN or status >= 500 else "bury"  # noqa: PLR2004 - HTTP


def is_trouble(status: int) -> bool:
    """Tell whether a status speaks against the destination itself, and so feeds its breaker."""
    return status >= 500 or status == OVERLOADED  # noqa: PLR2004 - HTTP: server errors


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Read ``Retry-After`` (RFC 9110 section 10.2.3): seconds or a date; ``None`` if neither."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:8]), SECONDS_MAX))
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(at - now, timedelta(0)) if at.tzinfo else None
