"""The daily compare's pages: days beside each other, one report, upload, sign-off."""

from datetime import date
from typing import Any, BinaryIO, cast

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect

from reliability.conf import conf
from reliability.console import compared, export, strip
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.models import Discrepancy, Report, Source, Statement, Verdict
from reliability.reconcile import local_day
from reliability.reconcile.changes import changes, previous
from reliability.reconcile.day import NothingToCompare
from reliability.reconcile.discrepancies import Refusal
from reliability.reconcile.forcing import agree_to_force, ask_to_force
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.signing import needs_note, open_on, prepare, sign
from reliability.reconcile.statement import Refused, import_statement, receive

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
        "versions": _versions(report),
        "statement": report.statement,
        "needs_note": needs_note(report),
        "blind": _blind_spots(report),
        "passed": sum(gate["verdict"] == "passed" for gate in report.gates),
        "unproven": sum(gate["verdict"] == "unproven" for gate in report.gates),
    }
    return show(request, "reports/detail.html", context)


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
    rows = rows.select_related("line", "job", "source")
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
    ignored = (
        compared.discrepancies_of(report).filter(status=Discrepancy.Status.IGNORED).count()
    )
    if ignored:
        spots.append(f"{ignored} ignored by hand, each with its reason.")
    if silent := Verdict.objects.filter(
        report=report, operation__amount_minor=None, verdict__in=compared.AGREEING
    ).count():
        spots.append(
            f"{silent} of our events give no amount: only their being there was compared."
        )
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


# Acts.


@act(needs="upload_statement")
def upload(request: OperatorRequest) -> HttpResponse:
    """Keep a file, read it as the day's statement and compare."""
    source, day = _asked_for(request)
    given = request.FILES.get("file")
    if given is None or given.file is None:
        raise NotUnderstood("No file was chosen.")
    if (given.size or 0) > conf().upload_bytes_max:
        size = conf().upload_bytes_max // 1024 // 1024
        messages.error(
            request,
            f"{given.name}: more than {size} MB. Use manage.py reconcile --file for larger ones.",
        )
        return redirect("console:reports")
    who = request.user.get_username()
    try:
        artefact = receive(
            source,
            name=given.name or "statement",
            content=cast("BinaryIO", given.file),
            by=who,
        )
    except StatementError as error:
        messages.error(request, f"{given.name}: {error}.")
        return redirect("console:reports")
    read = import_statement(artefact, day)
    if isinstance(read, Refused):
        messages.error(request, f"Refused. {read.sentence}.")
    elif artefact.seen_again and _has_report(read):
        messages.success(request, "These bytes were seen before: nothing has changed.")
    return _compare(request, source, day)


def _asked_for(request: OperatorRequest) -> tuple[Source, date]:
    sources = for_tenant(request, Source.objects.filter(internal=False))
    source = sources.filter(slug=request.POST.get("source", "")).first()
    if source is None:
        raise NotUnderstood("The form names no source of this tenant.")
    try:
        return source, date.fromisoformat(request.POST.get("day", ""))
    except ValueError:
        raise NotUnderstood("The form names no day.") from None


def _has_report(statement: Statement) -> bool:
    return Report.objects.filter(statement=statement, current=True).exists()


def _compare(request: OperatorRequest, source: Source, day: date) -> HttpResponse:
    try:
        report = compare_onwards(source, day, by=request.user.get_username())
    except (NothingToCompare, StatementError) as error:
        messages.error(request, str(error))
        return redirect("console:reports")
    return redirect("console:report", report.public_id)


@act(needs="upload_statement")
def compare_again(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Run the day's compare again on what is kept; the same inputs change nothing."""
    report = _report(request, public_id)
    newest = Report.objects.filter(source=report.source, day=report.day, current=True).first()
    answer = _compare(request, report.source, report.day)
    now = Report.objects.filter(source=report.source, day=report.day, current=True).first()
    if newest and newest == now:
        messages.success(request, f"Nothing has changed since version {newest.version}.")
    return answer


@act(needs="upload_statement")
def ask_force(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Ask a second person to let an incomplete statement be compared."""
    return _answer(request, ask_to_force(_report(request, public_id), act_of(request)))


@act(needs="sign_report")
def agree_force(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Agree, as the second person, to what somebody else asked for."""
    return _answer(request, agree_to_force(_report(request, public_id), act_of(request)))


@act(needs="upload_statement")
def prepare_day(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Say that the day was gone through, with a note for the reviewer."""
    return _answer(request, prepare(_report(request, public_id), act_of(request)))


@act(needs="sign_report")
def sign_day(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Sign this version off."""
    return _answer(request, sign(_report(request, public_id), act_of(request)))


def _answer(request: OperatorRequest, done: Any) -> HttpResponse:
    """Tell what an act did and go to the report as it is now."""
    public_id = request.resolver_match.kwargs["public_id"] if request.resolver_match else ""
    if isinstance(done, Refusal):
        messages.error(request, f"{done.why} Nothing has changed.")
        return redirect("console:report", public_id)
    return redirect("console:report", done.report.public_id)


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
