"""Ignore rules: what is in force, what each took off the list, adding and ending one."""

from datetime import date

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.models import Discrepancy, IgnoreRule, Source
from reliability.reconcile.discrepancies import Refusal
from reliability.reconcile.ignoring import Wanted, add_rule, end_rule

RULES_MAX = 200


@page(needs="view_report")
def index(request: OperatorRequest) -> HttpResponse:
    """List rules, those in force first."""
    rules = for_tenant(request, IgnoreRule.objects.select_related("source"))
    sources = for_tenant(request, Source.objects.filter(internal=False)).order_by("slug")
    compared = [source for source in sources if source.statement_kinds]
    context = {
        "rules": rules.annotate(taken=Count("ignored")).order_by("-until", "-pk")[:RULES_MAX],
        "sources": compared,
        "families": Discrepancy.Family.choices,
        "classes": sorted({kind for source in compared for kind in source.statement_kinds}),
        "today": request.now.date(),
    }
    return show(request, "reports/rules.html", context)


@act(needs="sign_report")
def add(request: OperatorRequest) -> HttpResponse:
    """Add a rule."""
    sources = for_tenant(request, Source.objects.filter(internal=False))
    source = sources.filter(slug=request.POST.get("source", "")).first()
    if source is None:
        raise NotUnderstood("The form names no source of this tenant.")
    done = add_rule(source, _wanted(request), act_of(request))
    if isinstance(done, Refusal):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:rules")


def _wanted(request: OperatorRequest) -> Wanted:
    asked = request.POST
    try:
        return Wanted(
            name=asked.get("name", "").strip()[:120],
            family=asked.get("family", ""),
            operation_class=asked.get("operation_class", ""),
            until=date.fromisoformat(asked.get("until", "")),
            starts_with=asked.get("starts_with", ""),
            amount_minor_max=int(asked["amount"]) if asked.get("amount") else None,
            currency=asked.get("currency", "").strip().upper()[:3],
        )
    except ValueError:
        raise NotUnderstood("The rule's last day or amount cannot be read.") from None


@act(needs="sign_report")
def end(request: OperatorRequest, public_id: str) -> HttpResponse:
    """End a rule; what it ignored is open again."""
    rule = owned(request, IgnoreRule.objects.all(), public_id=public_id)
    done = end_rule(rule, act_of(request))
    if isinstance(done, Refusal):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:rules")
