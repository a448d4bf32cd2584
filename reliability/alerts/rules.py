"""When an alert opens, reminds and resolves: levels, a hold, and one answer per look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Hush = Literal["", "silenced", "muted", "draining"]
"""Why nothing is to be told: a silence, muted causes, or a redrive that drains the scope."""


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
    """It is open. ``told``: since ``opened_at`` somebody knows, and ``reminded_at`` is the last time."""

    opened_at: datetime
    reminded_at: datetime | None = None
    told: bool = True


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
    """It stayed high: open it, once, and tell somebody unless it is hushed."""


@dataclass(frozen=True)
class Tell:
    """It is open, nobody was told, and nothing hushes it any more."""


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
Verdict = Stay | Hold | Open | Tell | Remind | Resolve | Drop


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One look: the whole value, and how much of it is muted or being drained."""

    value: int
    unmuted: int
    """The value without what is muted, nor drained beside that; at most ``value``."""
    undrained: int
    """The value without what a draining redrive takes; at most ``value``."""
    silenced: bool = False

    def hush(self, levels: Levels) -> Hush:
        """Say why nobody is to be told: what is left without it would not open the alert."""
        if self.silenced:
            return "silenced"
        if self.undrained < min(levels.high, self.value):
            return "draining"
        return "muted" if self.unmuted < min(levels.high, self.value) else ""


def decide(
    levels: Levels, state: State, *, value: int, now: datetime, hush: Hush = ""
) -> Verdict:
    """Return what one look at a value means; between ``low`` and ``high`` an alert keeps its state.

    What a redrive drains does not open; what is silenced or muted opens and is told to nobody,
    until that ends. A hold runs on all the while.
    """
    match state:
        case Quiet():
            return _when_quiet(levels, value, now, draining=hush == "draining")
        case Pending(since):
            return _when_pending(levels, value, now - since, draining=hush == "draining")
        case Firing():
            return _when_firing(levels, state, value, now=now, hush=hush)


def _when_quiet(levels: Levels, value: int, now: datetime, *, draining: bool) -> Verdict:
    if value < levels.high:
        return Stay()
    if levels.hold:
        return Hold(now)
    return Stay() if draining else Open()


def _when_pending(levels: Levels, value: int, held: timedelta, *, draining: bool) -> Verdict:
    if value < levels.high:
        return Drop()
    return Open() if held >= levels.hold and not draining else Stay()


def _when_firing(
    levels: Levels, state: Firing, value: int, *, now: datetime, hush: Hush
) -> Verdict:
    if value <= levels.low:
        return Resolve()
    if hush:
        return Stay()
    if not state.told:
        return Tell()
    silent = now - (state.reminded_at or state.opened_at)
    return Remind() if levels.remind and silent >= levels.remind else Stay()
