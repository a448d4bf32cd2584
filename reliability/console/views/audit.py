"""The trail of every act."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.figures import counted
from reliability.console.lists.audit import AuditFilter, AuditTable
from reliability.console.pages import show
from reliability.console.paging import paged
from reliability.models import AuditEntry


@page(needs="view_auditentry")
def index(request: OperatorRequest) -> HttpResponse:
    """List audit entries, newest first."""
    asked = AuditFilter(request, for_tenant(request, AuditEntry.objects.all()))
    found = asked.found()
    rows = paged(found, "number", request.GET.get("after", ""))
    table = AuditTable(rows.rows, now=request.now, caption="Audit entries, newest first")
    context = {"filter": asked, "page": rows, "table": table, "total": counted(found)}
    return show(request, "audit/index.html", context)
