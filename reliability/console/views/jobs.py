"""Any job, whatever its state."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.lists.jobs import JobFilter, JobTable
from reliability.console.pages import show_list
from reliability.models import Job


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List jobs, newest first."""
    jobs = for_tenant(request, Job.objects.select_related("key", "source"))
    return show_list(request, JobFilter(request, jobs), JobTable, template="jobs/index.html")
