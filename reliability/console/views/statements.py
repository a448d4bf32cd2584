"""Statements as they came: each day's revisions, and what a later one says differently."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, owned, page
from reliability.console.lists.statements import StatementFilter, StatementTable
from reliability.console.pages import show, show_list
from reliability.models import Artefact, Statement
from reliability.reconcile.revisions import revised, revision_before

REFUSED_MAX = 20


@page(needs="view_report")
def index(request: OperatorRequest) -> HttpResponse:
    """List statements, newest first."""
    rows = Statement.objects.select_related("source", "artefact")
    asked = StatementFilter(request, for_tenant(request, rows))
    return show_list(
        request, asked, StatementTable, by="created_at", template="reports/statements.html"
    )


@page(needs="view_report")
def refused(request: OperatorRequest) -> HttpResponse:
    """List files that could not be read at all, with the rule each broke."""
    files = for_tenant(request, Artefact.objects.exclude(refused="")).select_related("source")
    newest = files.order_by("-received_at")[:REFUSED_MAX]
    return show(request, "reports/refused.html", {"files": newest})


@page(needs="view_report")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show one revision: what it declares, what was computed, and what it changed."""
    rows = Statement.objects.select_related("source", "artefact")
    statement = owned(request, rows, public_id=public_id)
    before = revision_before(statement)
    context = {
        "statement": statement,
        "before": before,
        "changed": revised(before, statement) if before else [],
        "declared": sorted(statement.declared.items()),
        "computed": sorted(statement.computed.items()),
    }
    return show(request, "reports/statement.html", context)
