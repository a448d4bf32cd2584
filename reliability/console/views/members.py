"""Who is in the tenant and as what; and the member's own place: rights, tenant, appearance."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, logout
from django.contrib.auth.models import User
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
    for_tenant,
    page,
)
from reliability.console.choices import act_of, reasoned
from reliability.console.pages import THEME_COOKIE, THEMES, show
from reliability.models import Membership
from reliability.models.acting import Refused
from reliability.models.roles import ROLES
from reliability.work.members import (
    Changed,
    Joined,
    Removed,
    give_role,
    person_called,
    remove_member,
    role_of,
)

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
    "pause_work": "Pause and resume kinds and destinations",
    "add_silence": "Silence alerts, and end silences",
    "send_test": "Send tests to where alerts go",
    "sign_report": "Sign a day off",
    "approve_redrive": "Approve redrives that need a second person",
    "add_source": "Add sources",
    "change_source": "Change sources",
    "add_membership": "Add members",
    "change_membership": "Change members",
    "delete_membership": "Remove members",
    "change_alertrule": "Change alert rules and channels",
    "view_apitoken": "View the HTTP API’s tokens",
    "add_apitoken": "Make tokens",
    "delete_apitoken": "Revoke tokens",
}
MEMBERS_MAX = 200
UNCHANGED = "Nothing has changed."
YEAR_SECONDS = 365 * 24 * 60 * 60


@page(needs="change_membership")
def index(request: OperatorRequest) -> HttpResponse:
    """List the tenant's members by name, with what an admin may do to each."""
    name = f"user__{get_user_model().USERNAME_FIELD}"
    members = for_tenant(request, Membership.objects.select_related("user", "role"))
    rows = [
        (one.user, role_of(one), one.created_at)
        for one in members.order_by(name)[:MEMBERS_MAX]
    ]
    return show(request, "members/index.html", {"rows": rows, "roles": list(ROLES)})


@act(needs="add_membership")
def add(request: OperatorRequest) -> HttpResponse:
    """Make somebody who has an account a member."""
    person = person_called(request.POST.get("person", "").strip())
    if isinstance(person, Refused):
        messages.error(request, f"{person.why} {UNCHANGED}")
        return redirect("console:members")
    return _give(request, person)


@act(needs="change_membership")
def change(request: OperatorRequest) -> HttpResponse:
    """Give a member another role, for a reason."""
    person = _person(request)
    reasoned(request, "Another role needs a reason.")
    return _give(request, person)


def _give(request: OperatorRequest, person: User) -> HttpResponse:
    role = request.POST.get("role", "")
    match give_role(person, role, act_of(request)):
        case Refused(why):
            messages.error(request, f"{why} {UNCHANGED}")
        case Joined() | Changed():
            messages.success(request, f"{person.get_username()} is {role} now.")
        case _:
            messages.info(request, f"{person.get_username()} is {role} already.")
    return redirect("console:members")


@act(needs="delete_membership")
def remove(request: OperatorRequest) -> HttpResponse:
    """Take a member out of the tenant, for a reason."""
    person = _person(request)
    reasoned(request, "Removing somebody needs a reason.")
    match remove_member(person, act_of(request)):
        case Refused(why):
            messages.error(request, f"{why} {UNCHANGED}")
        case Removed():
            messages.success(request, f"{person.get_username()} is no member any more.")
    return redirect("console:members")


def _person(request: OperatorRequest) -> User:
    """Return the member the form names; one who is not in this tenant is a 404."""
    name = f"user__{get_user_model().USERNAME_FIELD}"
    members = for_tenant(request, Membership.objects.select_related("user"))
    member = members.filter(**{name: request.POST.get("person", "")}).first()
    if member is None:
        raise Http404("There is no such member.")
    return member.user


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
