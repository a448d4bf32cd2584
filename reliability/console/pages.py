"""The shell around every page: what the bar and the rail show."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

import reliability
from reliability.console import saved_views
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.figures import counted
from reliability.console.filters import StrictFilter
from reliability.console.paging import paged
from reliability.console.searching import SEARCH_SECONDS_MAX, TooSlow, bounded
from reliability.console.tables import RowsTable
from reliability.models import Alert, DeadLetter, Redrive

AREAS = {
    "dead-letters": "dead_letters",
    "discrepancies": "reports",
    "statements": "reports",
    "ignore-rules": "reports",
    "files": "reports",
    "alert-rules": "alerts",
    "alert-channels": "alerts",
}
"""The rail's entry for pages whose address begins otherwise than the entry's own name."""
THEMES = ("light", "dark")
THEME_COOKIE = "theme"


def show(
    request: OperatorRequest,
    template: str,
    context: dict[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render ``console/<template>`` inside the shell."""
    return render(
        request, f"console/{template}", _shell(request) | (context or {}), status=status
    )


def show_list(
    request: OperatorRequest,
    asked: StrictFilter,
    table: type[RowsTable],
    *,
    by: str = "id",
    template: str,
) -> HttpResponse:
    """Render one page of what was asked for, newest first by ``by``, counted up to a limit."""
    try:
        with bounded():
            found = asked.found()
            rows = paged(found, by, request.GET.get("after", ""))
            total = counted(found)
            ever = bool(rows.rows) or asked.queryset.exists()
    except TooSlow:
        return show_too_slow(request, asked)
    context = {
        "filter": asked,
        "page": rows,
        "table": table(rows.rows, now=request.now, caption=f"{asked.noun}, newest first"),
        "total": total,
        "ever": ever,
        "saved": saved_views.shown(request),
    }
    return show(request, template, context)


def show_too_slow(request: OperatorRequest, asked: StrictFilter) -> HttpResponse:
    """Say that a list could not be loaded: no empty list may stand for one nobody could read."""
    context = {"filter": asked, "seconds": SEARCH_SECONDS_MAX}
    return show(request, "too_slow.html", context, status=503)


def _shell(request: OperatorRequest) -> dict[str, Any]:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    open_letters = for_tenant(request, DeadLetter.objects.open())
    open_alerts = for_tenant(request, Alert.objects.filter(status=Alert.Status.OPEN))
    return {
        "member": request.member,
        "may": request.member.may,
        "now": request.now,
        "theme": theme if theme in THEMES else "",
        "letters_open": counted(open_letters),
        "alerts_open": counted(open_alerts),
        "redrives_live": counted(for_tenant(request, Redrive.objects.live())),
        "section": request.resolver_match.url_name if request.resolver_match else "",
        "area": _area(request),
        "version": getattr(reliability, "__version__", "0.1.0"),
    }


def _area(request: OperatorRequest) -> str:
    """Return the rail's entry that a page below it belongs to."""
    below = request.path.removeprefix(reverse("console:overview"))
    first = below.partition("/")[0]
    return AREAS.get(first, first)
