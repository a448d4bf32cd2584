"""Which local days are due and have no report yet; asked by beat each quarter of an hour."""

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from django.utils import timezone

from reliability.conf import conf
from reliability.errors import ReliabilityError
from reliability.models import Report, Run, Source, Statement
from reliability.reconcile import local_day
from reliability.reconcile.day import compare_day, due_by
from reliability.reconcile.discrepancies import settle

logger = logging.getLogger(__name__)

JOB = "reconcile"
PLANNER = "the planner"


@dataclass(frozen=True)
class Planned:
    """What one pass did; ``left`` says that it met its limit and more days wait."""

    compared: int = 0
    absent: int = 0
    failed: int = 0
    settled: int = 0
    left: bool = False


@dataclass(frozen=True)
class _Due:
    source: Source
    day: date


def plan(trigger: str) -> Planned:
    """Compare what is due, settle what came late, and record the pass as a ``Run``.

    A day is due once it is over and has a statement newer than its report, or none by its
    deadline. At most ``conf().reconcile_batch_max`` days, oldest first; the next pass goes on.
    """
    started_at = timezone.now()
    found = list(_limited(started_at))
    limit = conf().reconcile_batch_max
    reports = [_compared(one) for one in found[:limit]]
    made = [report for report in reports if report]
    absent = sum(report.completeness == Report.Completeness.ABSENT for report in made)
    planned = Planned(
        compared=len(made) - absent,
        absent=absent,
        failed=len(reports) - len(made),
        settled=settle().closed,
        left=len(found) > limit,
    )
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(),
        ok=not planned.failed, facts=asdict(planned),
    )  # fmt: skip
    return planned


def compare_onwards(source: Source, day: date, *, by: str) -> Report:
    """Compare a day, and the next one again where that was reported before this one.

    What is in transit at a day's end is looked at on the next: a late statement changes both.
    Raises as ``compare_day`` does, for the first of them only.
    """
    report = compare_day(source, day, by=by)
    after = Report.objects.filter(source=source, day=day + local_day.ONE_DAY, current=True)
    if after.filter(created_at__lt=report.created_at).exists():
        compare_day(source, day + local_day.ONE_DAY, by=by)
    return report


def _limited(now: datetime) -> Iterator[_Due]:
    for _, one in zip(range(conf().reconcile_batch_max + 1), due(now), strict=False):
        yield one


def due(now: datetime) -> Iterator[_Due]:
    """Yield each (source, local day) to compare, source by source, oldest day first."""
    sources = Source.objects.filter(internal=False).exclude(statement_format="")
    for source in sources.exclude(statement_kinds=[]).order_by("pk"):
        yield from (_Due(source, day) for day in _days_of(source, now))


def _days_of(source: Source, now: datetime) -> Iterator[date]:
    today = local_day.day_of(now, source.zone)
    first = max(
        today - timedelta(days=conf().reconcile_days_back),
        local_day.day_of(source.created_at, source.zone),
    )
    reported = set(
        Report.objects.filter(source=source, day__gte=first, current=True).values_list(
            "day", flat=True
        )
    )
    waiting = _with_news(source, first)
    for back in range((today - first).days, 0, -1):
        day = today - timedelta(days=back)
        overdue = local_day.is_due(day, source.statement_options) and now >= due_by(
            source, day
        )
        if day in waiting or (overdue and day not in reported):
            yield day


def _with_news(source: Source, first: date) -> set[date]:
    """Return the days whose newest statement no current report speaks of."""
    spoken_of = Report.objects.filter(source=source, current=True, day__gte=first)
    known = dict(spoken_of.values_list("day", "statement__revision"))
    days = Statement.objects.filter(source=source, day__gte=first).values_list(
        "day", "revision"
    )
    return {day for day, revision in days if revision > (known.get(day) or 0)}


def _compared(one: _Due) -> Report | None:
    """Compare one day; a set-up that cannot be compared must not stop the others."""
    try:
        return compare_onwards(one.source, one.day, by=PLANNER)
    except ReliabilityError as error:
        logger.warning(
            "day_not_compared",
            extra={"source": one.source.pk, "day": str(one.day), "why": str(error)},
        )
        return None
