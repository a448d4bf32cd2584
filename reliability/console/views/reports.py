"""The daily compare's pages: days beside each other, one report, what changed, files of it."""

from typing import Any

from django.db.models import F
from django.http import HttpResponse, StreamingHttpResponse

from reliability.conf import conf
from reliability.console import arrivals, compared, export, missing, strip
from reliability.console.access import OperatorRequest, owned, page
from reliability.console.figures import Counted, counted
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.console.parts import number
from reliability.console.provisional import provisional
from reliability.console.recovering import plan
from reliability.models import Discrepancy, Report, Verdict
from reliability.reconcile import local_day
from reliability.reconcile.changes import changes, previous
from reliability.reconcile.signing import needs_note, open_on

SHOWN_MAX = 200
"""Discrepancies on one report's page; the inbox pages through all of them."""
VERSIONS_MAX = 20


@page(needs="view_report")
def index(request: OperatorRequest) -> HttpResponse:
    """Show thirty days of every source, what waits for a person, and what is due next."""
    rows = strip.strip(request)
    waits = strip.needy(request)
    context = {
        "days": strip.days(request.now),
        "rows": rows,
        "needy": waits,
        "due": strip.due_next(request),
        "provisional": provisional(request),
        "folders": arrivals.folders(request),
        "readings": arrivals.readings(request),
        "say": _said(rows, waits),
        "upload_mib": conf().upload_bytes_max // 1024 // 1024,
        "yesterday": request.now.date() - local_day.ONE_DAY,
    }
    return show(request, "reports/index.html", context)


def _said(rows: list[strip.Row], waits: list[strip.Needy]) -> str:
    if not rows:
        return "No source compares anything yet, so layer 3 proves nothing."
    newest = [cell for row in rows if (cell := row.cells[-1]).report]
    good = [cell for cell in newest if cell.state not in {"incomplete", "absent"}]
    told = f"{len(good)} of {len(rows)} sources could be compared for yesterday."
    if not waits:
        return f"{told} Nothing waits for a person."
    return (
        f"{told} {len(waits)} {'day waits' if len(waits) == 1 else 'days wait'} for a person."
    )


@page(needs="view_report")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show one version of one day's report."""
    report = _report(request, public_id)
    before, after = compared.neighbours(report)
    found = compared.discrepancies_of(report)
    verdict = _chosen_verdict(request)
    open_now = open_on(report)
    context: dict[str, Any] = {
        "report": report,
        "say": compared.said(report, open_now),
        "open_now": open_now,
        "hours": local_day.hours_of(report.day, report.source.zone),
        "before": before,
        "after": after,
        "walks": compared.walks(report),
        "found": _shown(found, verdict),
        "verdict": verdict,
        "by_verdict": _by_verdict(found),
        "transit": compared.in_transit(report),
        "groups": missing.groups(report),
        "versions": _versions(report),
        "statement": report.statement,
        "needs_note": needs_note(report),
        "blind": _blind_spots(report),
        "passed": sum(gate["verdict"] == "passed" for gate in report.gates),
        "unproven": sum(gate["verdict"] == "unproven" for gate in report.gates),
        "recoverable": _recoverable(request, report),
        "older": previous(report),
    }
    return show(request, "reports/detail.html", context)


def _recoverable(request: OperatorRequest, report: Report) -> Counted | None:
    """Count what the member could recover of the report in one act; ``None``: they may not."""
    if "recover_discrepancy" not in request.member.may:
        return None
    return plan(report, request.user.get_username()).number


def _chosen_verdict(request: OperatorRequest) -> str:
    for name in request.GET:
        if name != "verdict":
            raise NotUnderstood(f"Filter not understood: “{name}”.")
    verdict = request.GET.get("verdict", "")
    if verdict and verdict not in compared.FAULTS:
        raise NotUnderstood(f"Filter “verdict” cannot be {verdict!r}.")
    return verdict


def _shown(found: Any, verdict: str) -> list[Discrepancy]:
    """Most urgent first: what is open, then by what it is worth."""
    rows = found.filter(verdict=verdict) if verdict else found
    rows = rows.select_related("line", "job__key", "source")
    worth = F("their_minor").desc(nulls_last=True)
    return list(rows.order_by("closed_at", worth, "pk")[:SHOWN_MAX])


def _by_verdict(found: Any) -> list[tuple[str, str, int]]:
    counts: dict[str, int] = {}
    for verdict in found.values_list("verdict", flat=True)[: conf().count_max]:
        counts[verdict] = counts.get(verdict, 0) + 1
    return [(name, compared.WORDS[name], n) for name, n in sorted(counts.items())]


def _versions(report: Report) -> list[Report]:
    versions = Report.objects.filter(source_id=report.source_id, day=report.day)
    return list(versions.order_by("-version")[:VERSIONS_MAX])


def _blind_spots(report: Report) -> list[str]:
    """Say what even a green day does not cover."""
    spots = []
    kinds = report.source.statement_kinds
    spots.append(
        f"Compared are {', '.join(kinds)}; what else the source sends is not on a statement."
    )
    ignored = counted(
        compared.discrepancies_of(report).filter(status=Discrepancy.Status.IGNORED)
    )
    if ignored.number:
        spots.append(f"{number(ignored)} ignored by hand or by rule, each with its reason.")
    silent = counted(
        Verdict.objects.filter(
            report=report, operation__amount_minor=None, verdict__in=compared.AGREEING
        )
    )
    if silent.number:
        told = f"{number(silent)} of our events give no amount"
        spots.append(f"{told}: only their being there was compared.")
    if report.completeness == Report.Completeness.UNPROVEN:
        spots.append("Nothing in the file proves that no row is missing from it.")
    return spots


@page(needs="view_report")
def what_changed(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show what this version says that the one before it did not."""
    report = _report(request, public_id)
    old = previous(report)
    context = {
        "report": report,
        "old": old,
        "changes": changes(old, report) if old else [],
    }
    return show(request, "reports/changes.html", context)


def _report(request: OperatorRequest, public_id: str) -> Report:
    reports = Report.objects.select_related("source", "statement__artefact")
    return owned(request, reports, public_id=public_id)


# Files.


@page(needs="view_report")
def as_csv(request: OperatorRequest, public_id: str) -> StreamingHttpResponse:
    """Export the verdicts for a spreadsheet."""
    report = _report(request, public_id)
    rows = export.as_csv(report, export.shape_of(request))
    return _file(report, rows, "text/csv; charset=utf-8", "csv")


@page(needs="view_report")
def as_json(request: OperatorRequest, public_id: str) -> StreamingHttpResponse:
    """Export the report with its verdicts for a program."""
    report = _report(request, public_id)
    return _file(report, export.as_json(report), "application/json", "json")


def _file(
    report: Report, content: Any, content_type: str, ending: str
) -> StreamingHttpResponse:
    name = f"{report.source.slug}_{report.day}_v{report.version}.{ending}"
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return StreamingHttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{safe}"'},
    )
