"""Recovering what a report misses in one act: what it would do, and doing it."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from reliability.conf import conf
from reliability.console import compared
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of, read_seen, reasoned
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.console.parts import are, number
from reliability.console.recovering import WITH_LINES, plan
from reliability.models import Discrepancy, Report
from reliability.reconcile.recover_many import LeftOut, Many, recover_many

TOLD_MAX = 5
"""Refusals told one by one; the rest are counted."""


@page(needs="recover_discrepancy")
def preview(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show what recovering all that a report misses would do; changes nothing."""
    report = _report(request, public_id)
    context = {
        "report": report,
        "plan": plan(report, act_of(request).actor),
        "limit": conf().selection_max,
    }
    return show(request, "reports/recover.html", context)


@act(needs="recover_discrepancy")
def recover(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Recover what the page showed, as it showed it, for a reason."""
    report = _report(request, public_id)
    seen = _seen(request, report)
    reasoned(request, "A recovery of many needs a reason.")
    _tell(request, recover_many(report.source, seen, act_of(request)))
    return redirect("console:report", report.public_id)


def _seen(request: OperatorRequest, report: Report) -> list[Discrepancy]:
    """Read the frozen set. One that is not of the report refuses the whole act with 404."""
    asked = dict(read_seen(value) for value in request.POST.getlist("discrepancy"))
    if not asked:
        raise NotUnderstood("The form names nothing to recover.")
    if len(asked) > conf().selection_max:
        raise NotUnderstood(f"At most {conf().selection_max} at a time.")
    missing = for_tenant(request, compared.discrepancies_of(report)).filter(
        family=Discrepancy.Family.MISSING, public_id__in=asked
    )
    found = list(missing.select_related(*WITH_LINES).order_by("pk"))
    if len(found) != len(asked):
        raise Http404("Something of this set does not exist.")
    for one in found:
        one.version = asked[one.public_id]
    return found


def _tell(request: OperatorRequest, many: Many) -> None:
    if n := len(many.recovered):
        messages.success(request, f"{number(n)} {are(n)} being recovered.")
    if n := len(many.asked):
        needs = "needs" if n == 1 else "need"
        messages.warning(
            request, f"{number(n)} {needs} a second person to recover: you asked."
        )
    if many.unreached:
        messages.warning(
            request, f"{number(many.unreached)} not reached in time; recover again for those."
        )
    if many.left:
        messages.error(request, _left_out(many.left))


def _left_out(left: list[LeftOut]) -> str:
    told = [f"D-{one.discrepancy.pk}: {one.why}" for one in left[:TOLD_MAX]]
    n = len(left)
    if n > TOLD_MAX:
        told.append(f"And {number(n - TOLD_MAX)} more.")
    return f"{number(n)} {are(n)} left out. {' '.join(told)}"


def _report(request: OperatorRequest, public_id: str) -> Report:
    return owned(request, Report.objects.select_related("source"), public_id=public_id)
