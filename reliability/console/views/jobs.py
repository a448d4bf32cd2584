"""Any job, whatever its state."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.figures import counted
from reliability.console.lists.jobs import JobFilter, JobTable
from reliability.console.pages import show
from reliability.console.paging import paged
from reliability.models import Job


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List jobs, newest first."""
    jobs = for_tenant(request, Job.objects.select_related("key", "source"))
    asked = JobFilter(request, jobs)
    found = asked.found()
    rows = paged(found, "id", request.GET.get("after", ""))
    table = JobTable(rows.rows, now=request.now, caption="Jobs, newest first")
    context = {"filter": asked, "page": rows, "table": table, "total": counted(found)}
    return show(request, "jobs/index.html", context)
