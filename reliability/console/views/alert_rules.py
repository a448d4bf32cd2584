"""Alert rules: the form of a new one, one as it stands, and what an admin does to it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.alerts.adding import add_alert_rule, change_alert_rule, switch_alert_rule
from reliability.console.access import OperatorRequest, act, owned, page
from reliability.console.alert_form import form_of, wanted_rule
from reliability.console.choices import act_of
from reliability.console.pages import show
from reliability.models import AlertRule
from reliability.models.acting import Refused


@page(needs="change_alertrule")
def new(request: OperatorRequest) -> HttpResponse:
    """Show the form of a new rule."""
    return _form(request, None)


@act(needs="change_alertrule")
def add(request: OperatorRequest) -> HttpResponse:
    """Add a rule; a refused one is shown again as it was typed."""
    match add_alert_rule(wanted_rule(request), act_of(request)):
        case Refused(why):
            return _form(request, None, error=why)
        case rule:
            messages.info(request, f"{rule.name} looks with the next pass.")
            return redirect("console:alerts")


@page(needs="change_alertrule")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show one rule in its form."""
    return _form(request, _rule(request, public_id))


@act(needs="change_alertrule")
def change(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Change a rule; a refused change is shown again as it was typed."""
    rule = _rule(request, public_id)
    match change_alert_rule(rule, wanted_rule(request), act_of(request)):
        case Refused(why):
            return _form(request, rule, error=why)
        case changed:
            messages.info(request, f"{changed.name} looks so with the next pass.")
            return redirect("console:alerts")


@act(needs="change_alertrule")
def switch(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Switch a rule off, or on again."""
    rule = _rule(request, public_id)
    done = switch_alert_rule(rule, act_of(request), on=request.POST.get("on") == "1")
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:alert_rule", public_id)


def _form(request: OperatorRequest, rule: AlertRule | None, error: str = "") -> HttpResponse:
    context = form_of(request, rule) | {"rule": rule, "error": error}
    return show(request, "alerts/rule.html", context)


def _rule(request: OperatorRequest, public_id: str) -> AlertRule:
    return owned(request, AlertRule.objects.select_related("source"), public_id=public_id)
