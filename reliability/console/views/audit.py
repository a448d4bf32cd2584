"""The trail of every act."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.lists.audit import AuditFilter, AuditTable
from reliability.console.pages import show_list
from reliability.models import AuditEntry


@page(needs="view_auditentry")
def index(request: OperatorRequest) -> HttpResponse:
    """List audit entries, newest first."""
    asked = AuditFilter(request, for_tenant(request, AuditEntry.objects.all()))
    return show_list(request, asked, AuditTable, by="number", template="audit/index.html")
