"""The member's own place: rights, tenant, appearance, sign-out."""

from django.conf import settings
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from reliability.console.access import (
    ANY_MEMBER,
    OperatorRequest,
    act,
    anybody,
    choose_tenant,
    enter_tenant,
    page,
)
from reliability.console.pages import THEME_COOKIE, THEMES, show
from reliability.models.roles import ROLES

WORDS = {
    "view_deadletter": "View dead letters",
    "view_job": "View jobs, deliveries and traces",
    "view_report": "View reports",
    "view_alert": "View alerts",
    "view_source": "View sources",
    "view_auditentry": "View the audit trail",
    "requeue_deadletter": "Requeue",
    "discard_deadletter": "Discard and restore",
    "recover_discrepancy": "Recover what never arrived",
    "upload_statement": "Upload statements and run the compare",
    "view_payload": "View unredacted payloads, with a reason",
    "sign_report": "Sign a day off",
    "add_source": "Add sources",
    "change_source": "Change sources",
    "add_membership": "Add members",
    "change_membership": "Change members",
    "delete_membership": "Remove members",
    "change_alertrule": "Change alert rules",
}
YEAR_SECONDS = 365 * 24 * 60 * 60


@page(needs=ANY_MEMBER)
def you(request: OperatorRequest) -> HttpResponse:
    """Show what the member may do here, and which role would allow the rest."""
    rights = [
        (word, codename in request.member.may, _least_role(codename))
        for codename, word in WORDS.items()
    ]
    return show(request, "members/you.html", {"rights": rights})


def _least_role(codename: str) -> str:
    return next((role for role, codenames in ROLES.items() if codename in codenames), "")


@act(needs=ANY_MEMBER)
def tenant(request: OperatorRequest) -> HttpResponse:
    """Look at another of the member's tenants."""
    choose_tenant(request, request.POST.get("tenant", ""))
    return redirect("console:overview")


@page(needs=ANY_MEMBER)
def enter(request: OperatorRequest, tenant: str, where: str) -> HttpResponse:
    """Follow a mail's link into the tenant it speaks of; it leads to our own pages only."""
    enter_tenant(request, tenant)
    query = request.META["QUERY_STRING"]
    local = where.lstrip("/\\")
    return redirect(f"/{local}" + (f"?{query}" if query else ""))


@act(needs=ANY_MEMBER)
def appearance(request: OperatorRequest) -> HttpResponse:
    """Keep light, dark or the system's choice in a cookie."""
    theme = request.POST.get("theme", "")
    if theme not in {"", *THEMES}:
        raise Http404
    response = redirect("console:overview")
    response.set_cookie(
        THEME_COOKIE, theme, max_age=YEAR_SECONDS, samesite="Lax", secure=request.is_secure()
    )
    return response


@anybody
@csrf_protect
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session; also for somebody who is a member of no tenant."""
    logout(request)
    return redirect(settings.LOGIN_URL)
