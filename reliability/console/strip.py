"""Thirty days beside each other, a row for each source: what balanced, what did not, what is due."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count

from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.compared import AGREEING, FAULTS
from reliability.console.parts import number
from reliability.models import Discrepancy, Report, Source
from reliability.reconcile import local_day
from reliability.reconcile.day import due_by

DAYS = 30
MONDAY = 0
NEEDY_MAX = 50
BASIS_POINTS = 10_000


@dataclass(frozen=True)
class Cell:
    """One source's one day; ``count`` is how many events were missing."""

    day: date
    state: str
    count: int
    report: Report | None
    label: str
    week: bool


@dataclass(frozen=True)
class Row:
    """One source's thirty days, with the share that agreed and what was missing."""

    source: Source
    cells: list[Cell]
    agreement: str
    missing: int


@dataclass(frozen=True)
class Needy:
    """A day that waits for a person, and what of it is open."""

    report: Report
    what: str
    open: int


@dataclass(frozen=True)
class DueNext:
    """The next day of a source whose statement has not come."""

    source: Source
    day: date
    by: datetime


def days(now: datetime) -> list[date]:
    """Return the thirty days that end yesterday, by UTC, oldest first."""
    yesterday = now.date() - local_day.ONE_DAY
    return [yesterday - timedelta(days=n) for n in reversed(range(DAYS))]


def strip(request: OperatorRequest) -> list[Row]:
    """Return a row for each source of the tenant that compares anything."""
    shown = days(request.now)
    reports = for_tenant(request, Report.objects.filter(current=True, day__gte=shown[0]))
    by_day = {(report.source_id, report.day): report for report in reports}
    told = {source_id for source_id, _ in by_day}
    sources = for_tenant(request, Source.objects.filter(internal=False)).order_by("slug")
    return [
        _row(source, shown, by_day)
        for source in sources
        if source.statement_kinds or source.pk in told
    ]


def _row(source: Source, shown: list[date], by_day: dict[tuple[int, date], Report]) -> Row:
    cells = [_cell(day, by_day.get((source.pk, day))) for day in shown]
    reports = [cell.report for cell in cells if cell.report]
    agree, of = (
        (sum(part) for part in zip(*map(_agreement, reports), strict=True))
        if reports
        else (0, 0)
    )
    return Row(
        source=source,
        cells=cells,
        agreement=_percent(agree, of),
        missing=sum(cell.count for cell in cells),
    )


def _cell(day: date, report: Report | None) -> Cell:
    week = day.weekday() == MONDAY
    words = f"{day:%a} {day.day} {day:%b}"
    if report is None:
        return Cell(day, "notdue", 0, None, f"{words}: no report", week)
    missing = report.counts.get("missing", 0)
    state = report.completeness
    if missing and state == Report.Completeness.COMPLETE:
        state = "missing"
    told = f"{words}: {report.get_completeness_display().lower()}"
    if missing:
        told += f", {number(missing)} missing"
    if report.signed_at:
        told += f", signed by {report.signed_by}"
    return Cell(day, state, missing, report, told, week)


def _agreement(report: Report) -> tuple[int, int]:
    if report.completeness == Report.Completeness.INCOMPLETE:
        return 0, 0
    agree = sum(report.counts.get(name, 0) for name in AGREEING)
    return agree, agree + sum(report.counts.get(name, 0) for name in FAULTS)


def _percent(agree: int, of: int) -> str:
    """Write a share; only what agrees wholly is written as 100 %."""
    if not of:
        return "–"
    if agree == of:
        return "100 %"
    return f"{agree * BASIS_POINTS // of / 100:.2f} %"


def needy(request: OperatorRequest) -> list[Needy]:
    """Return the days that wait for a person: no verdict possible first, then by age."""
    unusable = [Report.Completeness.INCOMPLETE, Report.Completeness.ABSENT]
    current = for_tenant(request, Report.objects.filter(current=True)).select_related("source")
    stuck = current.filter(completeness__in=unusable, signed_at=None).order_by("-day")
    found = [Needy(report, _stuck_on(report), 0) for report in stuck[:NEEDY_MAX]]
    return [*found, *_with_open(request)][:NEEDY_MAX]


def _stuck_on(report: Report) -> str:
    failed = [gate["sentence"] for gate in report.gates if gate["verdict"] == "failed"]
    return "; ".join(failed) or "no statement arrived by its deadline"


def _with_open(request: OperatorRequest) -> Iterator[Needy]:
    rows = for_tenant(request, Discrepancy.objects.open())
    groups = rows.values("source_id", "last_day", "verdict").annotate(n=Count("pk")).order_by()
    by_day: dict[tuple[int, date], dict[str, int]] = {}
    for group in groups[: NEEDY_MAX * 10]:
        of_day = by_day.setdefault((group["source_id"], group["last_day"]), {})
        of_day[group["verdict"]] = group["n"]
    reports = for_tenant(request, Report.objects.filter(current=True)).select_related("source")
    days_open = {day for _, day in by_day}
    for report in reports.filter(day__in=days_open).order_by("-day", "source__slug"):
        if verdicts := by_day.get((report.source_id, report.day)):
            words = [f"{number(n)} {name.replace('_', ' ')}" for name, n in verdicts.items()]
            yield Needy(report, ", ".join(words), sum(verdicts.values()))


def due_next(request: OperatorRequest) -> list[DueNext]:
    """Return the next statement each source waits for, earliest deadline first."""
    recent = request.now.date() - timedelta(days=3)
    reports = for_tenant(request, Report.objects.filter(current=True, day__gte=recent))
    reported = set(reports.values_list("source_id", "day"))
    sources = for_tenant(request, Source.objects.filter(internal=False))
    waited = [
        _next_due(source, request.now, reported)
        for source in sources.exclude(statement_format="")
        if source.statement_kinds
    ]
    return sorted(waited, key=lambda one: (one.by, one.source.slug))


def _next_due(source: Source, now: datetime, reported: set[tuple[int, date]]) -> DueNext:
    """Find the first expected day from yesterday on that has no report yet."""
    day = local_day.day_of(now, source.zone) - local_day.ONE_DAY
    while (source.pk, day) in reported or not local_day.is_due(day, source.statement_options):
        day += local_day.ONE_DAY
    return DueNext(source, day, due_by(source, day))
