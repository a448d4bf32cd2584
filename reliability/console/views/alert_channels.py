"""Channels besides mail: the form of a new one, adding it, removing one."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.alerts.channel_acts import WantedChannel, add_channel, remove_channel
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood
from reliability.console.once import put_aside
from reliability.console.pages import show
from reliability.console.views.alerts import SHOWN_ONCE
from reliability.models import AlertChannel, AlertRule
from reliability.models.acting import Refused

FIELD_MAX = 2_001
"""One more than an address may have, so that a longer one is refused and not cut."""


@page(needs="change_alertrule")
def new(request: OperatorRequest) -> HttpResponse:
    """Show the form of a new channel."""
    return _form(request)


@act(needs="change_alertrule")
def add(request: OperatorRequest) -> HttpResponse:
    """Add a channel; what its webhooks are signed with is shown once, on the page of alerts."""
    asked = request.POST
    wanted = WantedChannel(
        asked.get("name", "").strip()[:FIELD_MAX],
        asked.get("address", "").strip()[:FIELD_MAX],
        _rules(request),
    )
    added = add_channel(wanted, act_of(request))
    if isinstance(added, Refused):
        return _form(request, error=f"{added.why} Nothing was saved.")
    if added.secret:
        put_aside(request, SHOWN_ONCE, added.secret)
    messages.info(request, f"Alerts go to {added.channel.name} from now on: send it a test.")
    return redirect("console:alerts")


@act(needs="change_alertrule")
def remove(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Remove a channel."""
    channel = owned(request, AlertChannel.objects.all(), public_id=public_id)
    done = remove_channel(channel, act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:alerts")


def _rules(request: OperatorRequest) -> list[AlertRule]:
    asked = set(request.POST.getlist("rule"))
    found = [one for one in _of_tenant(request) if str(one.public_id) in asked]
    if len(found) != len(asked):
        raise NotUnderstood("The form names no rule of this tenant.")
    return found


def _of_tenant(request: OperatorRequest) -> list[AlertRule]:
    return list(for_tenant(request, AlertRule.objects.filter(enabled=True)).order_by("pk"))


def _form(request: OperatorRequest, error: str = "") -> HttpResponse:
    """Show the form; a refused address is not shown again, for it may hold a secret."""
    ticked = set(request.POST.getlist("rule"))
    context = {
        "error": error,
        "named": request.POST.get("name", ""),
        "rules": [(one, str(one.public_id) in ticked) for one in _of_tenant(request)],
    }
    return show(request, "alerts/channel.html", context)
