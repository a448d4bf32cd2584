"""The inbox of discrepancies, and what a person may do about one."""

from collections.abc import Callable
from datetime import date
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.console import compared
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of, version_seen
from reliability.console.filters import NotUnderstood
from reliability.console.lists.discrepancies import DiscrepancyFilter, DiscrepancyTable
from reliability.console.pages import show, show_list
from reliability.models import AuditEntry, DeadLetter, Discrepancy, Operation
from reliability.reconcile import discrepancies
from reliability.reconcile.discrepancies import Changed, Refusal
from reliability.reconcile.recover import Asked, Recovered, recover
from reliability.reconcile.windows import recoverable_until

AUDIT_MAX = 50
Done = Asked | Changed | Recovered | Refusal


@page(needs="view_report")
def index(request: OperatorRequest) -> HttpResponse:
    """List discrepancies, open ones unless asked otherwise, newest first."""
    rows = Discrepancy.objects.select_related("source", "job__key")
    asked = DiscrepancyFilter(request, for_tenant(request, rows))
    return show_list(
        request, asked, DiscrepancyTable, by="opened_at", template="reports/inbox.html"
    )


@page(needs="view_report")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show both sides of one discrepancy beside each other."""
    one = _discrepancy(request, public_id)
    operation = _operation(one)
    line = one.line
    occurred_at = (line.occurred_at or line.booked_at) if line else None
    context: dict[str, Any] = {
        "one": one,
        "line": line,
        "operation": operation,
        "letter": _letter(operation),
        "words": compared.WORDS[one.verdict],
        "cause": compared.CAUSES.get(one.cause, one.cause),
        "until": recoverable_until(one.source.preset, occurred_at) if occurred_at else None,
        "entries": AuditEntry.objects.filter(
            tenant=request.tenant, about="discrepancy", about_id=str(one.public_id)
        ).order_by("-number")[:AUDIT_MAX],
    }
    return show(request, "reports/discrepancy.html", context)


def _operation(one: Discrepancy) -> Operation | None:
    """Return the operation it is about; of a batch, the member the compare named."""
    of_source = Operation.objects.filter(
        tenant=one.tenant_id, source=one.source, operation_class=one.operation_class
    ).select_related("key__job")
    named = of_source.filter(reference=one.reference).first()
    if named or not one.job_id:
        return named
    return of_source.filter(batch=one.reference, key__job=one.job_id).first()


def _letter(operation: Operation | None) -> DeadLetter | None:
    if operation is None:
        return None
    return DeadLetter.objects.filter(job__key_id=operation.key_id).order_by("-pk").first()


@act(needs="recover_discrepancy")
def recover_one(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Put what never arrived through layer 1, or push what died."""
    from_line = "from_line" in request.POST
    return _decide(request, public_id, lambda one, act: recover(one, act, from_line=from_line))


@act(needs="recover_discrepancy")
def ignore(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Take it off the open list until a day, for a reason."""
    until = _until(request)
    return _decide(
        request, public_id, lambda one, act: discrepancies.ignore(one, act, until=until)
    )


@act(needs="recover_discrepancy")
def resolve(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Say that it was settled by hand, and where."""
    return _decide(request, public_id, discrepancies.resolve)


@act(needs="recover_discrepancy")
def reopen(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Put it back on the open list."""
    return _decide(request, public_id, discrepancies.reopen)


@act(needs="recover_discrepancy")
def take(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Become the one who looks after it."""
    return _decide(request, public_id, discrepancies.take)


@act(needs="recover_discrepancy")
def comment(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Leave a word on its record."""
    return _decide(request, public_id, discrepancies.comment)


def _until(request: OperatorRequest) -> date | None:
    text = request.POST.get("until", "")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise NotUnderstood("The form names no day until which to ignore it.") from None


def _decide(
    request: OperatorRequest, public_id: str, verb: Callable[..., Done]
) -> HttpResponse:
    one = _discrepancy(request, public_id)
    one.version = version_seen(request)
    match verb(one, act_of(request)):
        case Refusal(why=why):
            messages.error(request, f"{why} Nothing has changed.")
        case Recovered(how=how):
            messages.success(request, f"D-{one.pk} is being recovered. {how}")
        case Asked():
            messages.success(request, f"Asked. A second person has to recover D-{one.pk}.")
        case Changed():
            messages.success(request, f"D-{one.pk} was changed.")
    return _back(request, one)


def _back(request: OperatorRequest, one: Discrepancy) -> HttpResponse:
    """Return to where the act was clicked: the report, or the discrepancy's own page."""
    if request.POST.get("from") == "report":
        return redirect("console:report", one.report.public_id)
    return redirect("console:discrepancy", one.public_id)


def _discrepancy(request: OperatorRequest, public_id: str) -> Discrepancy:
    rows = Discrepancy.objects.select_related("source", "line", "report", "job")
    return owned(request, rows, public_id=public_id)
