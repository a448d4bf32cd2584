"""The month of every source, and the pack that goes to whoever audits it."""

from django.http import HttpResponse

from reliability.console import month as months
from reliability.console.access import OperatorRequest, page
from reliability.console.pages import show
from reliability.reconcile import local_day


@page(needs="view_report")
def index(request: OperatorRequest) -> HttpResponse:
    """Show whether each source's month is there, agrees and is signed."""
    first = months.month_asked(request)
    rows = months.month_of(request, first)
    before = (first - local_day.ONE_DAY).replace(day=1)
    after = months.month_after(first)
    context = {
        "first": first,
        "last": months.month_after(first) - local_day.ONE_DAY,
        "rows": rows,
        "before": before,
        "after": after if after <= request.now.date() else None,
        "say": _said(rows),
    }
    return show(request, "reports/month.html", context)


def _said(rows: list[months.OfSource]) -> str:
    if not rows:
        return "No source compares anything yet."
    closed = sum(row.closed for row in rows)
    still = sum(row.open for row in rows)
    told = f"{closed} of {len(rows)} sources are closed: every due day reported and signed."
    return (
        f"{told} {still} {'item is' if still == 1 else 'items are'} carried."
        if still
        else told
    )


@page(needs="view_report")
def pack(request: OperatorRequest) -> HttpResponse:
    """Export the month with every hash, figure and signature."""
    first = months.month_asked(request)
    name = f"reconciliation_{request.tenant.slug}_{first:%Y-%m}.json"
    return HttpResponse(
        months.pack(request, first),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
