"""The recorded runs. They serve every tenant at once and tell counts only."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, page
from reliability.console.lists.runs import RunFilter, RunTable
from reliability.console.pages import show_list
from reliability.models import Run


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List runs of the sweep, the alerts, the planner and the prune, newest first."""
    asked = RunFilter(request, Run.objects.all())
    return show_list(request, asked, RunTable, by="started_at", template="runs/index.html")
