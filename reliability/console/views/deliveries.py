"""What came to the door: what it did, and what was turned away."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.lists.deliveries import (
    DeliveryFilter,
    DeliveryTable,
    RefusalFilter,
    RefusalTable,
)
from reliability.console.pages import show_list
from reliability.models import Receipt, Refusal


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List what deliveries did to the keys they carried, newest first."""
    receipts = for_tenant(request, Receipt.objects.select_related("source", "key", "delivery"))
    asked = DeliveryFilter(request, receipts)
    return show_list(request, asked, DeliveryTable, template="deliveries/index.html")


@page(needs="view_job")
def refused(request: OperatorRequest) -> HttpResponse:
    """List what the door turned away, counted by source, reason and hour."""
    refusals = for_tenant(request, Refusal.objects.select_related("source"))
    asked = RefusalFilter(request, refusals)
    template = "deliveries/refused.html"
    return show_list(request, asked, RefusalTable, by="last_at", template=template)
