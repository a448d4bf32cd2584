"""A plain second look at one day: dictionaries by reference, and no code of what it is to check."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Told:
    """One movement as one side tells it; ``dead``: taken in and ended in a dead letter."""

    reference: str
    amount_minor: int
    at: datetime
    dead: bool = False


@dataclass(frozen=True)
class Frame:
    """The day looked at. Of ours, what happened from ``since`` to ``ends`` has to be explained."""

    day: date
    zone: ZoneInfo
    since: datetime
    ends: datetime
    grace: timedelta
    listed_on: Mapping[str, date]
    """The other days whose statements list a reference."""


Verdicts = Counter[tuple[str, str, str]]
"""(reference, verdict, cause) and how often."""


def look(theirs: Iterable[Told], ours: Mapping[str, Told], frame: Frame) -> Verdicts:
    """Say what each of their rows is, then what of ours they do not list."""
    said: Verdicts = Counter()
    seen: set[str] = set()
    for row in theirs:
        repeated = row.reference in seen
        seen.add(row.reference)
        verdict = ("duplicate_theirs", "")
        if not repeated:
            verdict = _row(row, ours.get(row.reference), frame.zone)
        said[row.reference, *verdict] += 1
    for our in _unlisted(ours, seen, frame):
        later = frame.listed_on.get(our.reference, frame.day) > frame.day
        waits = later or our.at + frame.grace >= frame.ends
        said[our.reference, "in_transit" if waits else "unexpected", ""] += 1
    return said


def _row(row: Told, our: Told | None, zone: ZoneInfo) -> tuple[str, str]:
    if our is None:
        return "missing", "never_received"
    if our.dead:
        return "missing", "in_dead_letter"
    if our.amount_minor != row.amount_minor:
        return "amount_mismatch", ""
    days = {one.at.astimezone(zone).date() for one in (row, our)}
    return ("matched" if len(days) == 1 else "matched_timing"), ""


def _unlisted(ours: Mapping[str, Told], seen: set[str], frame: Frame) -> Iterable[Told]:
    for our in ours.values():
        inside = frame.since <= our.at < frame.ends
        before = frame.listed_on.get(our.reference, frame.day) < frame.day
        if inside and not before and our.reference not in seen:
            yield our
