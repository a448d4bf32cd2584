"""Open letters by cause: how many, what they are worth, since when, and what people know of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Abs

from reliability.console.parts import money
from reliability.models import DeadLetter, LetterGroup, Source

CAUSES_MAX = 200
"""Causes on the page; the largest are shown and the page says that there are more."""
GROUPS_MAX = CAUSES_MAX * 10
"""Rows of the statement: causes by outcome and currency."""
BINS, BIN = 14, timedelta(hours=12)
CANNOT_RUN = {
    DeadLetter.Outcome.UNROUTABLE: "no route for this kind",
    DeadLetter.Outcome.UNPARSEABLE: "cannot be read; see the delivery",
    DeadLetter.Outcome.SUSPECT: "held back; decide letter by letter",
}
SORTS = {
    "": lambda cause: (-cause.worth, -cause.letters),
    "count": lambda cause: (-cause.letters, -cause.worth),
    "last": lambda cause: (-cause.last_at.timestamp(), -cause.letters),
    "first": lambda cause: (cause.first_at.timestamp(), -cause.letters),
}

Name = tuple[int, str, str]
Unit = tuple[str | None, int | None]


@dataclass(kw_only=True)
class CauseRow:
    """One cause as the page shows it. ``worth`` orders it: major units, summed only to sort."""

    source: Source
    kind: str
    fingerprint: str
    first_at: datetime
    last_at: datetime
    letters: int = 0
    returned: int = 0
    worth: float = 0.0
    outcomes: list[str] = field(default_factory=list)
    came: dict[Unit, int] = field(default_factory=dict)
    back: dict[Unit, int] = field(default_factory=dict)
    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    bars: list[dict[str, Any]] = field(default_factory=list)
    known: LetterGroup | None = None

    @property
    def query(self) -> str:
        """The list's filter that finds exactly these letters."""
        asked = {"source": self.source.slug, "kind": self.kind, "cause": self.fingerprint}
        return urlencode({name: value for name, value in asked.items() if value})

    @property
    def instead(self) -> str:
        """Why a requeue has no meaning here; empty where it has."""
        if set(self.outcomes) <= set(CANNOT_RUN):
            return CANNOT_RUN[DeadLetter.Outcome(self.outcomes[0])]
        return ""

    def add(self, row: dict[str, Any]) -> None:
        self.letters += row["n"]
        self.returned += row["returned"]
        self.first_at = min(self.first_at, row["first_at"])
        self.last_at = max(self.last_at, row["last_at"])
        if row["outcome"] not in self.outcomes:
            self.outcomes.append(row["outcome"])
        unit = (row["currency"], row["exponent"])
        for told, minor in ((self.came, row["came"]), (self.back, row["back"])):
            if minor:
                told[unit] = told.get(unit, 0) + int(minor)
                self.worth += float(minor) / 10 ** (row["exponent"] or 0)
        since = [row[f"since_{n}"] for n in range(BINS)] + [0]
        for n in range(BINS):
            self.bins[n] += since[n] - since[n + 1]

    @property
    def amounts(self) -> list[str]:
        """What the letters are worth, per currency."""
        return [money(minor, *unit) for unit, minor in self.came.items()]

    @property
    def refunds(self) -> list[str]:
        return [money(minor, *unit) for unit, minor in self.back.items()]


@dataclass(frozen=True)
class Causes:
    """The causes of the open letters; ``more`` when not all fit the page."""

    rows: list[CauseRow]
    more: bool

    @property
    def letters(self) -> int:
        return sum(row.letters for row in self.rows)

    @property
    def share(self) -> int:
        """How much of the letters the largest cause is, in percent."""
        most = max((row.letters for row in self.rows), default=0)
        return round(100 * most / self.letters) if self.letters else 0


def causes(letters: "QuerySet[DeadLetter]", *, now: datetime, sort: str) -> Causes:
    """Group open letters in one statement, with their half days of the last seven days.

    Muted causes come last. Amounts are absolute and never added across currencies, but to sort.
    """
    found = list(_grouped(letters, now - BIN * BINS)[:GROUPS_MAX])
    rows = _folded(found)
    _attach_notes(rows)
    rows.sort(key=lambda row: (_muted(row, now), SORTS[sort](row)))
    shown = rows[:CAUSES_MAX]
    for row in shown:
        row.bars = _bars(row.bins)
    return Causes(shown, len(rows) > len(shown) or len(found) == GROUPS_MAX)


def _grouped(letters: "QuerySet[DeadLetter]", begin: datetime) -> Any:
    """One row per cause, outcome and currency, with the letters since each half day began.

    Not one per half day: the planner takes every moment for a group of its own, and sorts all rows.
    """
    by = ("source_id", "kind", "fingerprint", "outcome", "currency", "exponent")
    since = {
        f"since_{n}": Count("pk", filter=Q(buried_at__gte=begin + n * BIN))
        for n in range(BINS)
    }
    return (
        letters.order_by()
        .values(*by)
        .annotate(
            n=Count("pk"),
            returned=Count("pk", filter=Q(round__gt=1)),
            first_at=Min("buried_at"),
            last_at=Max("buried_at"),
            came=Sum("amount_minor", filter=Q(amount_minor__gte=0)),
            back=Sum(Abs("amount_minor"), filter=Q(amount_minor__lt=0)),
            **since,
        )
        .order_by("-n")
    )


def _folded(found: Iterable[dict[str, Any]]) -> list[CauseRow]:
    found = list(found)
    sources = Source.objects.in_bulk({row["source_id"] for row in found})
    rows: dict[Name, CauseRow] = {}
    for row in found:
        name = (row["source_id"], row["kind"], row["fingerprint"])
        if name not in rows:
            rows[name] = CauseRow(
                source=sources[name[0]], kind=name[1], fingerprint=name[2],
                first_at=row["first_at"], last_at=row["last_at"],
            )  # fmt: skip
        rows[name].add(row)
    return list(rows.values())


def _attach_notes(rows: Sequence[CauseRow]) -> None:
    known = LetterGroup.objects.filter(
        source__in={row.source.pk for row in rows},
        fingerprint__in={row.fingerprint for row in rows},
    )
    notes = {(one.source_id, one.kind, one.fingerprint): one for one in known}
    for row in rows:
        row.known = notes.get((row.source.pk, row.kind, row.fingerprint))


def _muted(row: CauseRow, now: datetime) -> bool:
    return row.known is not None and row.known.muted(now)


def _bars(bins: Sequence[int]) -> list[dict[str, Any]]:
    most = max(bins) or 1
    return [
        {
            "x": 6.8 * n,
            "y": 19 - height,
            "height": height,
            "ink": "c-dead" if came else "c-wait",
        }
        for n, came in enumerate(bins)
        for height in [max(1, round(18 * came / most))]
    ]
