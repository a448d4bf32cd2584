"""Small pieces of markup, each in one place: badges, times, amounts, numbers."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console.figures import Counted

THIN = "\u202f"
ICONS = {
    "absent": "absent", "absorbed": "loop", "accepted": "check", "alert": "alert", "bad": "alert",
    "cameback": "loop", "closed": "dot", "complete": "square", "conflict": "fork",
    "dead": "dead", "discarded": "dot", "done": "check", "done late": "check",
    "dropped": "dot", "duplicate": "dot", "expired": "clock", "failed": "cross",
    "forced": "alert", "good": "check", "held": "pause", "ignored": "dot", "incomplete": "half",
    "info": "ring", "late": "check", "lost": "unknown", "matched": "check", "missing": "cross",
    "mismatch": "alert", "notdue": "dot", "open": "alert", "pending": "clock", "ready": "dot",
    "recovered": "check", "recovering": "ring", "released": "loop", "requeued": "loop",
    "resolved": "check", "running": "ring", "sent": "check", "suspect": "unknown",
    "transit": "clock", "unexpected": "tilde", "unknown": "unknown", "unparseable": "broken",
    "unproven": "tilde", "unroutable": "fork", "warn": "alert", "withheld": "tilde",
    # Redrives: verdicts, outcomes, states.
    "already applied": "loop", "cancelled": "dot", "cannot run": "fork", "cannot tell": "unknown",
    "failed again": "cross", "frozen": "dot", "left alone": "dot", "paused": "pause",
    "skipped": "dot", "stopped": "cross", "succeeded": "check", "waiting": "clock",
    "will run": "check", "window closed": "clock",
}  # fmt: skip
TONES = {
    "absorbed": "duplicate", "alert": "bad", "conflict": "warn", "discarded": "closed",
    "done late": "done", "dropped": "closed", "held": "warn", "late": "done",
    "mismatch": "amount", "pending": "warn", "recovered": "good", "released": "ready",
    "sent": "good", "suspect": "warn",
    "already applied": "duplicate", "cancelled": "closed", "cannot run": "unroutable",
    "cannot tell": "unknown", "failed again": "failed", "frozen": "closed",
    "left alone": "skipped", "paused": "warn", "succeeded": "done", "waiting": "warn",
    "will run": "done", "window closed": "expired",
}  # fmt: skip
"""States drawn in another state's tone; console.css knows the others."""
SYMBOLS = {"EUR": "€", "GBP": "£", "USD": "$"}


def icon(name: str) -> SafeString:
    return format_html(
        '<svg class="i" aria-hidden="true"><use href="#i-{}"></use></svg>', name
    )


def strata(layer: int | str = "") -> SafeString:
    """Return the mark of a layer: 1 claim, 2 sweep, 3 compare; all three bars for none."""
    return format_html(
        '<svg class="strata" aria-hidden="true" data-layer="{}"><use href="#i-layers"></use></svg>',
        layer,
    )


def badge(state: str, word: str = "", *, fill: bool = False) -> SafeString:
    """Return a state as word, shape and tone; ``fill`` gives it a ground, for heads only."""
    return format_html(
        '<span class="badge" data-state="{}"{}>{}{}</span>',
        TONES.get(state, state),
        " data-fill" if fill else "",
        icon(ICONS.get(state, "dot")),
        word or state,
    )


def number(value: "int | Counted") -> str:
    """Write a count with thin spaces; a capped one says that it is more."""
    if isinstance(value, Counted):
        return number(value.number) + ("+" if value.more else "")
    return f"{value:,}".replace(",", THIN)


def are(n: int) -> str:
    """Give the verb to a number of things."""
    return "is" if n == 1 else "are"


def money(minor: int | None, currency: str | None, exponent: int | None) -> str:
    """Write minor units as an amount, with the exponent the provider uses; nothing for none."""
    if minor is None or not currency:
        return ""
    digits = str(abs(minor)).rjust((exponent or 0) + 1, "0")
    cut = len(digits) - (exponent or 0)
    amount = number(int(digits[:cut])) + (f".{digits[cut:]}" if exponent else "")
    sign = "−" if minor < 0 else ""
    symbol = SYMBOLS.get(currency.upper())
    return f"{sign}{symbol}{amount}" if symbol else f"{sign}{amount}\u00a0{currency.upper()}"


def span(length: timedelta) -> str:
    """Write a duration in its two largest units."""
    length = abs(length)
    seconds = int(length.total_seconds())
    if not seconds and length:
        return f"{max(length // timedelta(milliseconds=1), 1)} ms"
    for unit, size, lesser, part in _UNITS:
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit}" + (
                f" {rest} {lesser}" if rest and lesser else ""
            )
    return f"{seconds} s"


_UNITS = (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "", 1))


def ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "never"
    if at > now:
        return f"in {span(timedelta(seconds=int((at - now).total_seconds())))}"
    return f"{span(timedelta(seconds=int((now - at).total_seconds())))} ago"


def when(at: datetime | None, words: str, zone: str = "UTC") -> SafeString:
    """Return a time element: ``words`` to read, exact UTC and the source's zone on hover."""
    if at is None:
        return format_html('<span class="soft">{}</span>', "–")
    exact = at.astimezone(UTC)
    title = f"{exact:%a} {exact.day} {exact:%b %Y, %H:%M:%S} UTC"
    if zone != "UTC":
        title += f" · {at.astimezone(ZoneInfo(zone)):%H:%M:%S} {zone}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', f"{exact:%Y-%m-%dT%H:%M:%SZ}", title, words
    )


def clock(at: datetime, now: datetime) -> str:
    """Write a time of day, with its date where that is not today's (UTC)."""
    there, here = at.astimezone(UTC), now.astimezone(UTC)
    day = "" if there.date() == here.date() else f"{there.day} {there:%b} "
    return f"{day}{there:%H:%M:%S}"
