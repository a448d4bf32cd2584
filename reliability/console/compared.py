"""One report as its page tells it: the sentence, the gates, the bridge, what is in transit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet, Sum

from reliability.console.parts import money, number
from reliability.console.risk import listed
from reliability.models import Discrepancy, Report, Verdict

AGREEING = ("matched", "matched_timing", "matched_tolerance")
WORDS: Mapping[str, str] = {
    "matched": "Agree",
    "matched_timing": "Agree, on another day",
    "matched_tolerance": "Agree within the tolerance",
    "amount_mismatch": "Amount differs",
    "currency_mismatch": "Currency differs",
    "status_mismatch": "Status differs",
    "fee_mismatch": "Fee differs",
    "missing": "Missing here",
    "unexpected": "Unexpected",
    "in_transit": "In transit to a later day",
    "early": "Early: younger than our grace",
    "duplicate_theirs": "Listed again by them",
    "duplicate_ours": "Twice at our side",
    "ambiguous": "Ambiguous",
    "out_of_scope": "Out of scope: fees, payouts",
    "not_comparable": "Not comparable",
}
CAUSES: Mapping[str, str] = {
    "": "",
    "never_received": "Never received",
    "received_unprocessed": "Received, not worked yet",
    "retrying": "Still retrying",
    "in_dead_letter": "In dead letter",
    "discarded": "Its dead letter was discarded",
    "exponent": "The currency’s decimals differ",
    "withheld": "Withheld: the statement is incomplete",
    "no_key": "The line names no reference",
    "quarantined": "The row could not be read",
}
FAULTS = frozenset(
    {
        "amount_mismatch", "currency_mismatch", "status_mismatch", "fee_mismatch", "missing",
        "unexpected", "duplicate_theirs", "duplicate_ours", "ambiguous",
    }
)  # fmt: skip
MISMATCHES = ("amount_mismatch", "currency_mismatch", "status_mismatch", "fee_mismatch")
OPENERS: Mapping[str, str] = {
    "complete": "Complete.",
    "unproven": "Unproven: the statement carries no count or balance to hold it to.",
    "incomplete": "Incomplete, so missing and unexpected are withheld.",
    "forced": "Forced: an incomplete statement was compared all the same.",
    "absent": "No statement arrived by its deadline, so nothing could be compared.",
}
WHY = {
    "unexpected": "Its grace is over and no line of theirs speaks of it",
    "ambiguous": "Several of theirs and several of ours belong to it",
    "duplicate_theirs": "The same reference is listed before",
    "duplicate_ours": "The same reference is listed before",
}
BAR_WIDTH = 600


@dataclass(frozen=True)
class Step:
    """One step of a bridge: what it explains and where its bar lies."""

    verdict: str
    label: str
    items: int
    minor: int
    left_minor: int
    bar: "Bar"


@dataclass(frozen=True)
class Bar:
    """From where to where of ``BAR_WIDTH``, with the zero line; the tone is a class."""

    x: float
    width: float
    zero: float
    start: float
    end: float
    tone: str


@dataclass(frozen=True)
class Walk:
    """A currency's way from their total to ours."""

    currency: str
    exponent: int
    theirs_minor: int
    ours_minor: int
    first: Bar
    steps: list[Step]

    @property
    def difference_minor(self) -> int:
        return self.theirs_minor - self.ours_minor

    @property
    def rest_minor(self) -> int:
        """What the steps leave unexplained: zero."""
        return self.difference_minor - sum(step.minor for step in self.steps)


@dataclass(frozen=True)
class Age:
    """Entries in transit of one age, and what they are worth."""

    label: str
    entries: int
    amounts: str


def said(report: Report, open_now: int) -> str:
    """Say in a few sentences how the day stands."""
    counts = report.counts
    parts = [OPENERS[report.completeness]]
    if counts:
        agree = sum(counts.get(name, 0) for name in AGREEING)
        of = agree + sum(counts.get(name, 0) for name in (*FAULTS, "early"))
        parts.append(f"{number(agree)} of {number(of)} agree.")
        parts.extend(_found(report))
    if open_now:
        parts.append(f"{number(open_now)} still open.")
    elif counts and report.completeness in {"complete", "unproven", "forced"}:
        parts.append("Nothing is open.")
    return " ".join(parts)


def _found(report: Report) -> Iterable[str]:
    counts, sums = report.counts, _sums(report)
    clauses = []
    if n := counts.get("missing", 0):
        clauses.append(f"{number(n)} missing here{_worth(sums, ['missing'])}")
    if n := sum(counts.get(name, 0) for name in MISMATCHES):
        clauses.append(
            f"{number(n)} {'differs' if n == 1 else 'differ'}{_worth(sums, MISMATCHES)}"
        )
    if n := counts.get("unexpected", 0):
        clauses.append(f"{number(n)} unexpected{_worth(sums, ['unexpected'])}")
    if n := counts.get("duplicate_theirs", 0) + counts.get("duplicate_ours", 0):
        clauses.append(f"{number(n)} listed twice")
    if n := counts.get("in_transit", 0):
        clauses.append(f"{number(n)} in transit to a later day")
    if n := counts.get("not_comparable", 0):
        clauses.append(f"{number(n)} not comparable")
    if clauses:
        yield f"{'; '.join(clauses)}."


def _sums(report: Report) -> Mapping[str, list[str]]:
    """Write what each verdict's items are worth, per currency; never summed across."""
    told: dict[str, list[str]] = {}
    for name, walk in report.bridge.items():
        for verdict, step in walk["buckets"].items():
            if step["minor"]:
                worth = money(step["minor"], name.partition("/")[0], walk["exponent"])
                told.setdefault(verdict, []).append(worth)
    return told


def _worth(sums: Mapping[str, list[str]], verdicts: Iterable[str]) -> str:
    words = [one for verdict in verdicts for one in sums.get(verdict, [])]
    return f" ({listed(words)})" if words else ""


def walks(report: Report) -> list[Walk]:
    """Lay out each currency's bridge; steps of zero are left out, they explain nothing."""
    return [_walk(name, walk) for name, walk in sorted(report.bridge.items())]


def _walk(name: str, walk: Mapping[str, Any]) -> Walk:
    buckets = [(v, b) for v, b in walk["buckets"].items() if b["minor"]]
    buckets.sort(key=lambda one: (one[0] not in FAULTS, -abs(one[1]["minor"])))
    difference = walk["theirs_minor"] - walk["ours_minor"]
    lefts = [difference]
    for _, bucket in buckets:
        lefts.append(lefts[-1] - bucket["minor"])
    low, high = min(0, *lefts), max(0, *lefts)
    steps = [
        Step(
            verdict=verdict,
            label=WORDS[verdict],
            items=bucket["items"],
            minor=bucket["minor"],
            left_minor=lefts[n + 1],
            bar=_bar(
                lefts[n], lefts[n + 1], (low, high), "c-bad" if verdict in FAULTS else "c-soft"
            ),
        )
        for n, (verdict, bucket) in enumerate(buckets)
    ]
    return Walk(
        currency=name.partition("/")[0],
        exponent=walk["exponent"],
        theirs_minor=walk["theirs_minor"],
        ours_minor=walk["ours_minor"],
        first=_bar(0, difference, (low, high), "c-mark"),
        steps=steps,
    )


def _bar(start: int, end: int, scale: tuple[int, int], tone: str) -> Bar:
    low, high = scale
    span = (high - low) or 1

    def x(value: int) -> float:
        return round(BAR_WIDTH * (value - low) / span, 1)

    return Bar(
        x=min(x(start), x(end)),
        width=max(abs(x(start) - x(end)), 1.5),
        zero=x(0),
        start=x(start),
        end=x(end),
        tone=tone,
    )


def in_transit(report: Report) -> list[Age]:
    """Group what is ours and not yet due by its age at the day's end."""
    rows = Verdict.objects.filter(report=report, verdict="in_transit")
    return [
        one
        for label, older, younger in (
            ("0 to 1 day", timedelta(0), timedelta(days=1)),
            ("2 to 3 days", timedelta(days=1), timedelta(days=3)),
            ("4 days and more", timedelta(days=3), timedelta(days=3650)),
        )
        if (one := _age(rows, label, report.ends_at - younger, report.ends_at - older)).entries
    ]


def _age(rows: "QuerySet[Verdict]", label: str, since: datetime, until: datetime) -> Age:
    within = rows.filter(
        operation__occurred_at__gt=since, operation__occurred_at__lte=until
    ).values("currency", "exponent")
    sums = within.annotate(n=Count("pk"), minor=Sum("our_minor")).order_by("currency")
    found = list(sums)
    amounts = [money(row["minor"], row["currency"], row["exponent"]) for row in found]
    return Age(label, sum(row["n"] for row in found), listed([a for a in amounts if a]))


def discrepancies_of(report: Report) -> "QuerySet[Discrepancy]":
    """Return what was found on the report's day or carried over it, as it stands now."""
    return Discrepancy.objects.filter(
        source_id=report.source_id, first_day__lte=report.day, last_day__gte=report.day
    )


def ours_of(one: Discrepancy) -> str:
    """Print our amount in our own unit: it is not theirs where that is what differs."""
    currency, exponent = one.currency, one.exponent
    if one.job and (one.verdict == "currency_mismatch" or one.cause == "exponent"):
        key = one.job.key
        if key.currency is not None and key.exponent is not None:
            currency, exponent = key.currency, key.exponent
    return money(one.our_minor, currency, exponent) or "–"


def why(one: Discrepancy) -> str:
    """Say why, as far as the compare can: by cause, or by how far the figures are apart."""
    if words := CAUSES.get(one.cause, one.cause) or WHY.get(one.verdict):
        return words
    if one.verdict == "currency_mismatch" and one.job:
        return f"Theirs is in {one.currency}, ours in {one.job.key.currency}"
    if one.verdict == "amount_mismatch" and None not in (one.their_minor, one.our_minor):
        off = (one.our_minor or 0) - (one.their_minor or 0)
        apart = money(abs(off), one.currency, one.exponent)
        return f"Ours is {apart} {'higher' if off > 0 else 'lower'}"
    return "–"


def neighbours(report: Report) -> tuple[Report | None, Report | None]:
    """Return the current reports of the source's day before and after."""
    others = Report.objects.filter(source_id=report.source_id, current=True)
    before = others.filter(day__lt=report.day).order_by("-day").first()
    return before, others.filter(day__gt=report.day).order_by("day").first()
