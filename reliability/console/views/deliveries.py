"""What came through the door, and what it did."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.figures import counted
from reliability.console.lists.deliveries import DeliveryFilter, DeliveryTable
from reliability.console.pages import show
from reliability.console.paging import paged
from reliability.models import Receipt


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List what deliveries did to the keys they carried, newest first."""
    receipts = for_tenant(request, Receipt.objects.select_related("key__source", "delivery"))
    asked = DeliveryFilter(request, receipts)
    found = asked.found()
    rows = paged(found, "id", request.GET.get("after", ""))
    table = DeliveryTable(rows.rows, now=request.now, caption="Deliveries, newest first")
    context = {"filter": asked, "page": rows, "table": table, "total": counted(found)}
    return show(request, "deliveries/index.html", context)
