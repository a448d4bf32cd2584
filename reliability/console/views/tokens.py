"""Tokens of the HTTP API: who calls it for this tenant, making one, revoking one."""

from datetime import UTC, datetime, time, timedelta

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from reliability.console.access import OperatorRequest, act, for_tenant, page
from reliability.console.choices import act_of, reasoned
from reliability.console.filters import NotUnderstood
from reliability.console.once import put_aside, take_out
from reliability.console.pages import show
from reliability.models import ApiToken
from reliability.models.acting import Refused
from reliability.work.tokens import Made, Revoked, make_token, revoke_token

TOKENS_MAX = 200
ABOUT = "api token"


@page(needs="view_apitoken")
def index(request: OperatorRequest) -> HttpResponse:
    """List the tokens that are not revoked; a new one is shown here once."""
    tokens = ApiToken.objects.unrevoked(request.tenant).order_by("name")[:TOKENS_MAX]
    rows = [
        (token, bool(token.expires_at and token.expires_at <= request.now)) for token in tokens
    ]
    context = {"rows": rows, "shown": take_out(request, ABOUT), "today": request.now.date()}
    return show(request, "tokens/index.html", context)


@act(needs="add_apitoken")
def make(request: OperatorRequest) -> HttpResponse:
    """Make a token; the next page shows it, and no page after that."""
    name = request.POST.get("name", "").strip()
    match make_token(name, act_of(request), expires_at=_end(request)):
        case Refused(why):
            messages.error(request, f"{why} Nothing has changed.")
        case Made(_, text):
            put_aside(request, ABOUT, text)
    return redirect("console:tokens")


def _end(request: OperatorRequest) -> datetime | None:
    """Read a token's last day as the moment that day ends (UTC)."""
    last = request.POST.get("last_day", "")
    try:
        day = datetime.fromisoformat(last).date() if last else None
        return datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
    except (ValueError, OverflowError):
        raise NotUnderstood("The token’s last day cannot be read.") from None


@act(needs="delete_apitoken")
def revoke(request: OperatorRequest) -> HttpResponse:
    """End a token at once, for a reason; another tenant's does not exist."""
    name = request.POST.get("name", "")
    if not for_tenant(request, ApiToken.objects.filter(name=name)).exists():
        raise Http404("There is no such token.")
    reasoned(request, "Revoking a token needs a reason.")
    match revoke_token(name, act_of(request)):
        case Refused(why):
            messages.error(request, f"{why} Nothing has changed.")
        case Revoked():
            messages.success(request, f"The token {name} lets nobody in any more.")
    return redirect("console:tokens")
