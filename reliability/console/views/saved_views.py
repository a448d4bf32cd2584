"""Saving a list's filter under a name, and forgetting it."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from reliability.console import saved_views
from reliability.console.access import ANY_MEMBER, OperatorRequest, act
from reliability.console.filters import NotUnderstood, StrictFilter
from reliability.console.lists.audit import AuditFilter
from reliability.console.lists.deliveries import DeliveryFilter, RefusalFilter
from reliability.console.lists.discrepancies import DiscrepancyFilter
from reliability.console.lists.jobs import JobFilter
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.lists.redrives import RedriveFilter
from reliability.console.lists.runs import RunFilter
from reliability.console.lists.statements import StatementFilter
from reliability.console.views.causes import CauseFilter

PAGES: dict[str, type[StrictFilter]] = {
    "audit": AuditFilter,
    "causes": CauseFilter,
    "dead_letters": DeadLetterFilter,
    "deliveries": DeliveryFilter,
    "discrepancies": DiscrepancyFilter,
    "jobs": JobFilter,
    "redrives": RedriveFilter,
    "refused": RefusalFilter,
    "runs": RunFilter,
    "statements": StatementFilter,
}
"""The lists whose filters can be saved, by the name of their route."""


@act(needs=ANY_MEMBER)
def save(request: OperatorRequest) -> HttpResponse:
    """Keep the filter of a list under a name."""
    page = request.POST.get("page", "")
    if page not in PAGES:
        raise NotUnderstood("The form names no list whose filter could be saved.")
    query = QueryDict(request.POST.get("query", "")).urlencode()
    rows = PAGES[page].Meta.model.objects.none()
    asked = PAGES[page](request, rows, query)
    asked.found()
    view = saved_views.save(
        request, page, asked.kept, name=request.POST.get("name", "").strip(),
        shared="shared" in request.POST,
    )  # fmt: skip
    messages.success(request, f"Saved “{view.name}”.")
    return redirect(f"{reverse(f'console:{page}')}?{view.query}")


@act(needs=ANY_MEMBER)
def delete(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Forget a view."""
    view = saved_views.delete(request, public_id)
    messages.success(request, f"Deleted the view “{view.name}”. Its rows are untouched.")
    return redirect(f"console:{view.page}" if view.page in PAGES else "console:overview")
