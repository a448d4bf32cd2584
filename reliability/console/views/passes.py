"""The recorded passes. They serve every tenant at once and tell counts only."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, page
from reliability.console.lists.passes import PassFilter, PassTable
from reliability.console.pages import show_list
from reliability.models import Run


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List passes of the sweep, the alerts, the planner and the prune, newest first."""
    asked = PassFilter(request, Run.objects.all())
    return show_list(request, asked, PassTable, by="started_at", template="passes/index.html")
