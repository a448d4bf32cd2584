"""Acts on one day's report: compare again, force by two people, prepare, sign off."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.console.access import OperatorRequest, act, owned
from reliability.console.choices import act_of
from reliability.errors import TryAgain
from reliability.models import Report
from reliability.reconcile.day import NothingToCompare
from reliability.reconcile.discrepancies import Refusal
from reliability.reconcile.forcing import agree_to_force, ask_to_force
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.signing import prepare, sign


@act(needs="upload_statement")
def compare_again(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Run the day's compare again on what is kept; the same inputs change nothing."""
    report = _report(request, public_id)
    newest = Report.objects.filter(source=report.source, day=report.day, current=True).first()
    try:
        now = compare_onwards(report.source, report.day, by=request.user.get_username())
    except (NothingToCompare, StatementError, TryAgain) as error:
        messages.error(request, str(error))
        return redirect("console:report", public_id)
    if now == newest:
        messages.success(request, f"Nothing has changed since version {now.version}.")
    return redirect("console:report", now.public_id)


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


def _report(request: OperatorRequest, public_id: str) -> Report:
    return owned(request, Report.objects.select_related("source"), public_id=public_id)
