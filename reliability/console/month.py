"""One month of every source: is each day there, does it agree, and has somebody signed it."""

import calendar
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.compared import AGREEING
from reliability.console.filters import NotUnderstood
from reliability.console.parts import money
from reliability.models import Discrepancy, Report, Source
from reliability.reconcile import local_day


@dataclass(frozen=True)
class OfSource:
    """One source's month."""

    source: Source
    due: int
    reported: int
    signed: int
    forced: list[Report]
    unusable: list[Report]
    agree: int
    open: int
    totals: list[tuple[str, str, str]]

    @property
    def closed(self) -> bool:
        """Whether every due day has a report that somebody signed and nothing is open."""
        return self.due == self.signed and not self.open


def month_asked(request: OperatorRequest) -> date:
    """Read ``month=YYYY-MM``; without it, the month of yesterday. Raises NotUnderstood."""
    text = request.GET.get("month", "")
    yesterday = request.now.date() - local_day.ONE_DAY
    try:
        first = date.fromisoformat(f"{text}-01") if text else yesterday.replace(day=1)
    except ValueError:
        first = None
    if first is None or set(request.GET) - {"month"}:
        raise NotUnderstood("The month asked for cannot be read; write it as 2026-10.")
    return first


def month_after(first: date) -> date:
    """Return the first day of the month after."""
    return (first.replace(day=28) + 4 * local_day.ONE_DAY).replace(day=1)


def days_of(first: date, today: date) -> list[date]:
    """Return the days of a month that are over."""
    count = calendar.monthrange(first.year, first.month)[1]
    days = [first.replace(day=n) for n in range(1, count + 1)]
    return [day for day in days if day < today]


def month_of(request: OperatorRequest, first: date) -> list[OfSource]:
    """Return every source that compares anything, with its month."""
    days = days_of(first, request.now.date())
    current = Report.objects.filter(current=True, day__in=days).select_related("statement")
    reports: dict[int, list[Report]] = {}
    for report in for_tenant(request, current).order_by("day"):
        reports.setdefault(report.source_id, []).append(report)
    rows = for_tenant(request, Discrepancy.objects.open()).filter(last_day__in=days)
    standing = Counter(rows.values_list("source_id", flat=True))
    sources = for_tenant(request, Source.objects.filter(internal=False)).order_by("slug")
    return [
        _of(source, days, reports.get(source.pk, []), standing[source.pk])
        for source in sources
        if source.statement_kinds or source.pk in reports
    ]


def _of(source: Source, days: list[date], reports: list[Report], still: int) -> OfSource:
    began = local_day.day_of(source.created_at, source.zone)
    due = {d for d in days if d >= began and local_day.is_due(d, source.statement_options)}
    unusable = [
        report for report in reports if report.completeness in {"incomplete", "absent"}
    ]
    return OfSource(
        source=source,
        due=len(due | {report.day for report in reports}),
        reported=len(reports),
        signed=sum(report.signed_at is not None for report in reports),
        forced=[report for report in reports if report.forced_by],
        unusable=unusable,
        agree=sum(report.counts.get(name, 0) for report in reports for name in AGREEING),
        open=still,
        totals=_totals(reports),
    )


def _totals(reports: list[Report]) -> list[tuple[str, str, str]]:
    theirs: Counter[tuple[str, int]] = Counter()
    ours: Counter[tuple[str, int]] = Counter()
    for report in reports:
        for name, walk in report.bridge.items():
            unit = (name.partition("/")[0], walk["exponent"])
            theirs[unit] += walk["theirs_minor"]
            ours[unit] += walk["ours_minor"]
    return [
        (currency, money(theirs[currency, exponent], currency, exponent),
         money(ours[currency, exponent], currency, exponent))
        for currency, exponent in sorted(theirs.keys() | ours.keys())
    ]  # fmt: skip


def pack(request: OperatorRequest, first: date) -> bytes:
    """Write the month for whoever audits it: each report's hashes, figures and signatures."""
    days = days_of(first, request.now.date())
    reports = for_tenant(request, Report.objects.filter(current=True, day__in=days))
    rows = [
        _packed(report)
        for report in reports.select_related("source", "statement__artefact").order_by(
            "source__slug", "day"
        )
    ]
    text = json.dumps(rows, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    packed = {
        "tenant": request.tenant.slug,
        "month": f"{first:%Y-%m}",
        "made_at": request.now.isoformat(),
        "made_by": request.user.get_username(),
        "reports_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "hashed_as": "the JSON of reports: keys sorted, no spaces, UTF-8",
        "reports": rows,
    }
    return json.dumps(packed, indent=1, sort_keys=True, ensure_ascii=False).encode()


def _packed(report: Report) -> dict[str, Any]:
    statement = report.statement
    return {
        "source": report.source.slug,
        "day": str(report.day),
        "version": report.version,
        "completeness": report.completeness,
        "inputs_sha256": bytes(report.inputs_sha256).hex(),
        "file": statement.artefact.name if statement else None,
        "file_sha256": bytes(statement.artefact.sha256).hex() if statement else None,
        "revision": statement.revision if statement else None,
        "counts": report.counts,
        "bridge": report.bridge,
        "forced_by": [report.force_asked_by, report.forced_by] if report.forced_by else None,
        "force_reason": report.force_reason if report.forced_by else None,
        "prepared_by": report.prepared_by or None,
        "signed_by": report.signed_by or None,
        "signed_at": report.signed_at.isoformat() if report.signed_at else None,
        "signed_note": report.signed_note or None,
    }
