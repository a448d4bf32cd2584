"""The letters of a redrive in numbers: by verdict before it starts, by outcome while it runs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Abs

from reliability.console.handling import handling
from reliability.console.parts import money, span
from reliability.models import Redrive, RedriveMember
from reliability.work.redrive import Standing, counts, standing

Verdict, Outcome = RedriveMember.Verdict, RedriveMember.Outcome
KINDS_MAX = 20
Unit = tuple[str | None, int | None]
HAPPENS = {
    Verdict.WILL_RUN: "Back to ready with a fresh attempt budget, in a lane behind live traffic",
    Verdict.APPLIED: "Its effect is in the world. Left as it is by the requeue",
    Verdict.CANNOT_TELL: "Nobody could say whether it was applied. Left alone unless ticked",
    Verdict.RUNNING: "Waits in another redrive. Left alone",
    Verdict.WINDOW_CLOSED: "Downstream may have forgotten the key. Left alone",
    Verdict.CANNOT_RUN: "Without a route, not readable, held back, or without a handler here. "
    "Left alone",
}


@dataclass
class Worth:
    """A number of letters and what they are worth, refunds apart, never across currencies."""

    letters: int = 0
    amounts: list[str] = field(default_factory=list)
    refunds: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DryRun:
    """What would become of each letter: ``rows`` by verdict, in the order of the verdicts."""

    rows: list[tuple[str, str, Worth]]
    total: Worth

    def letters(self, verdict: str) -> int:
        return next((worth.letters for of, _, worth in self.rows if of == verdict), 0)

    @property
    def will_run(self) -> int:
        return self.letters(Verdict.WILL_RUN)

    @property
    def applied(self) -> int:
        return self.letters(Verdict.APPLIED)

    @property
    def cannot_tell(self) -> int:
        return self.letters(Verdict.CANNOT_TELL)

    @property
    def left(self) -> int:
        """Letters that are left alone without being applied."""
        return self.total.letters - self.will_run - self.applied


def dry_run(redrive: Redrive) -> DryRun:
    """Count a frozen set by verdict."""
    sums = _sums(redrive.members.all(), "verdict")
    rows = [(v.value, HAPPENS[v], sums[v.value]) for v in Verdict if v.value in sums]
    return DryRun(rows, sums.get("", Worth()))


def _sums(members: "QuerySet[RedriveMember]", by: str = "") -> dict[str, Worth]:
    """Sum letters and money by a column, and under the empty name all together: one pass."""
    columns = [by] if by else []
    rows = (
        members.order_by("letter__currency", "letter__exponent")
        .values(*columns, "letter__currency", "letter__exponent")
        .annotate(
            n=Count("pk"),
            came=Sum("letter__amount_minor", filter=Q(letter__amount_minor__gte=0)),
            back=Sum(Abs("letter__amount_minor"), filter=Q(letter__amount_minor__lt=0)),
        )
    )
    sums: dict[str, dict[Unit, Counter[str]]] = {}
    for row in rows:
        unit = (row["letter__currency"], row["letter__exponent"])
        for name in {row[by] if by else "", ""}:
            told = sums.setdefault(name, {}).setdefault(unit, Counter())
            told.update(n=row["n"], came=int(row["came"] or 0), back=int(row["back"] or 0))
    return {name: _worth(units) for name, units in sums.items()}


def _worth(units: Mapping[Unit, Counter[str]]) -> Worth:
    return Worth(
        sum(told["n"] for told in units.values()),
        [money(told["came"], *unit) for unit, told in units.items() if told["came"]],
        [money(told["back"], *unit) for unit, told in units.items() if told["back"]],
    )


def repeats(redrive: Redrive) -> list[tuple[str, str]]:
    """Say of each kind in the set what a repeat of it would do; at most ``KINDS_MAX`` kinds."""
    names = redrive.members.order_by("letter__kind").values_list("letter__kind", flat=True)
    return [
        (name, handling(name, own_job=False).risk) for name in names.distinct()[:KINDS_MAX]
    ]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a started redrive stands; ``bars`` are the stretches of its bar, in letters."""

    total: int
    settled: int
    many: dict[str, int]
    standing: Standing
    bars: list[dict[str, Any]]
    worth: Worth
    succeeded: Worth
    left: timedelta | None
    """Time to go at its rate; ``None`` where it does not run."""

    @property
    def share(self) -> str:
        """The share of results that failed, as the automatic stop counts it."""
        results = self.standing.succeeded + self.standing.failing
        return f"{100 * self.standing.failing / results:.1f} %" if results else "0 %"

    @property
    def left_in_words(self) -> str:
        return span(self.left) if self.left is not None else ""


INKS = (
    (Outcome.SUCCEEDED, "c-good"),
    (Outcome.FAILED, "c-bad"),
    (Outcome.SKIPPED, "c-soft"),
    (Outcome.RUNNING, "c-info"),
)


def progress(redrive: Redrive) -> Progress:
    """Count a started redrive by outcome; letters left alone from the start are not part of it."""
    many = counts(redrive)
    total = sum(many.values()) - many.get(Outcome.LEFT, 0)
    on_its_way = many.get(Outcome.PENDING, 0) + many.get(Outcome.RUNNING, 0)
    part = redrive.members.exclude(outcome=Outcome.LEFT)
    return Progress(
        total=total,
        settled=total - on_its_way,
        many={name.name.lower(): many.get(name.value, 0) for name in Outcome},
        standing=standing(redrive),
        bars=_bars(many),
        worth=_sums(part).get("", Worth()),
        succeeded=_sums(part.filter(outcome=Outcome.SUCCEEDED)).get("", Worth()),
        left=_left(redrive, many.get(Outcome.PENDING, 0)),
    )


@dataclass(frozen=True)
class UnderWay:
    """A live redrive in short: how many of its letters have come to an end, and how."""

    redrive: Redrive
    settled: int
    total: int
    failed: int
    bars: list[dict[str, Any]]


def under_way(live: "QuerySet[Redrive]", limit: int) -> list[UnderWay]:
    """Count the letters of the newest ``limit`` by outcome, without their money."""
    return [_in_short(one) for one in live.order_by("-pk")[:limit]]


def _in_short(redrive: Redrive) -> UnderWay:
    many = counts(redrive)
    total = sum(many.values()) - many.get(Outcome.LEFT, 0)
    on_its_way = many.get(Outcome.PENDING, 0) + many.get(Outcome.RUNNING, 0)
    return UnderWay(
        redrive, total - on_its_way, total, many.get(Outcome.FAILED, 0), _bars(many)
    )


def _bars(many: dict[str, int]) -> list[dict[str, Any]]:
    bars, x = [], 0
    for outcome, ink in INKS:
        width = many.get(outcome.value, 0)
        bars.append({"ink": ink, "x": x, "width": width})
        x += width
    return bars


def _left(redrive: Redrive, pending: int) -> timedelta | None:
    if redrive.state != Redrive.State.RUNNING or not pending:
        return None
    return timedelta(seconds=pending / redrive.rate)
