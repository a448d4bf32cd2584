"""Figures computed while a statement is read, to be held against what it declares."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime

from reliability.reconcile.formats.base import Declared, Item, Line, Quarantined, Unit


@dataclass(slots=True)
class Tally:
    """Counts and sums of one statement's lines; constant size, whatever the file's.

    ``broken_net`` and ``broken_at`` count the lines where gross − fee ≠ net and name the first.
    """

    lines: int = 0
    quarantined: int = 0
    sums: dict[Unit, int] = field(default_factory=lambda: defaultdict(int))
    broken_net: int = 0
    broken_at: int = 0
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None
    first_refusal: str = ""

    @property
    def rows(self) -> int:
        """Every row that claims to be a movement, readable or not."""
        return self.lines + self.quarantined

    def add(self, item: Item) -> None:
        """Count one item; a ``Declared`` adds nothing."""
        match item:
            case Line():
                self._line(item)
            case Quarantined(position, _, reason):
                self.quarantined += 1
                self.first_refusal = self.first_refusal or f"line {position}: {reason}"
            case Declared():
                return

    def _line(self, line: Line) -> None:
        self.lines += 1
        self.sums[line.settlement_unit] += line.effect_minor
        if line.net_minor is not None and line.fee_minor is not None:
            gross = line.amount_minor if line.settled_minor is None else line.settled_minor
            if gross - line.fee_minor != line.net_minor:
                self.broken_net += 1
                self.broken_at = self.broken_at or line.position
        if (
            at := line.booked_at or (None if line.booked_day else line.occurred_at)
        ) is not None:
            self._instant(at)
        elif (day := line.booked_day or line.occurred_day) is not None:
            self._day(day)

    def _instant(self, at: datetime) -> None:
        if self.earliest_at is None or at < self.earliest_at:
            self.earliest_at = at
        if self.latest_at is None or at > self.latest_at:
            self.latest_at = at

    def _day(self, day: date) -> None:
        if self.first_day is None or day < self.first_day:
            self.first_day = day
        if self.last_day is None or day > self.last_day:
            self.last_day = day
