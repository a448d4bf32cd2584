"""When an alert opens, reminds and resolves: levels, a hold, and one answer per look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Opens at ``high`` once held for ``hold``; closes at ``low``; ``remind`` of zero is never."""

    high: int
    low: int
    hold: timedelta
    remind: timedelta


# What is known of one rule on one scope.


@dataclass(frozen=True)
class Quiet:
    """No alert lives."""


@dataclass(frozen=True)
class Pending:
    """The value is high, and was at every look since."""

    since: datetime


@dataclass(frozen=True)
class Firing:
    """Somebody was told; ``reminded_at`` is ``None`` until they are told again."""

    opened_at: datetime
    reminded_at: datetime | None = None


# What to do about it.


@dataclass(frozen=True)
class Stay:
    """Nothing changes; nobody is told."""


@dataclass(frozen=True)
class Hold:
    """Begin to wait: the value became high."""

    since: datetime


@dataclass(frozen=True)
class Open:
    """It stayed high: tell somebody, once."""


@dataclass(frozen=True)
class Remind:
    """It is still not low, and the interval is over."""


@dataclass(frozen=True)
class Resolve:
    """It came down to low: say so."""


@dataclass(frozen=True)
class Drop:
    """It came down within its hold: nobody hears of it, and the next hold starts anew."""


State = Quiet | Pending | Firing
Verdict = Stay | Hold | Open | Remind | Resolve | Drop


def decide(levels: Levels, state: State, *, value: int, now: datetime) -> Verdict:
    """Return what one look at a value means; between ``low`` and ``high`` an alert keeps its state."""
    match state:
        case Quiet():
            return _when_quiet(levels, value, now)
        case Pending(since):
            return _when_pending(levels, value, now - since)
        case Firing(opened_at, reminded_at):
            return _when_firing(levels, value, now - (reminded_at or opened_at))


def _when_quiet(levels: Levels, value: int, now: datetime) -> Verdict:
    if value < levels.high:
        return Stay()
    return Hold(now) if levels.hold else Open()


def _when_pending(levels: Levels, value: int, held: timedelta) -> Verdict:
    if value < levels.high:
        return Drop()
    return Open() if held >= levels.hold else Stay()


def _when_firing(levels: Levels, value: int, silent: timedelta) -> Verdict:
    if value <= levels.low:
        return Resolve()
    return Remind() if levels.remind and silent >= levels.remind else Stay()
