"""An alert rule as its form says it, and as the form shows one that stands."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Model, QuerySet
from django.http import QueryDict

from reliability.alerts.adding import WantedRule
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.filters import NotUnderstood
from reliability.models import AlertChannel, AlertRule, Source

FIELD_MAX = 200
EMAILS_BYTES_MAX = 10_000
CHOSEN_MAX = 50
ASKED_FIRST = {"high": "25", "low": "10", "hold": "300", "remind": "14400"}
"""What the form of a new rule begins with; lengths in seconds."""


def wanted_rule(request: OperatorRequest) -> WantedRule:
    """Read the form. Raises NotUnderstood for what no form of ours would send."""
    asked = request.POST
    named = asked.get("source", "")
    source = _one(request, Source.objects.filter(slug=named), "source") if named else None
    return WantedRule(
        measure=asked.get("measure", "")[:FIELD_MAX],
        high=_number(asked, "high"),
        low=_number(asked, "low"),
        name=asked.get("name", "").strip()[:FIELD_MAX],
        source=source,
        kind=asked.get("kind", "").strip()[:FIELD_MAX],
        fingerprint=asked.get("cause", "").strip()[:FIELD_MAX],
        currency=asked.get("currency", "").strip().upper()[:FIELD_MAX],
        hold=timedelta(seconds=_number(asked, "hold")),
        remind=timedelta(seconds=_number(asked, "remind")),
        emails=asked.get("emails", "")[:EMAILS_BYTES_MAX].replace(",", " ").split(),
        channels=_channels(request),
        owner=asked.get("owner", "").strip()[:FIELD_MAX],
    )


def form_of(request: OperatorRequest, rule: AlertRule | None) -> dict[str, Any]:
    """Return what the form shows: what was typed, else the rule, else where a new one begins."""
    if request.method == "POST":
        values: Mapping[str, Any] = request.POST.dict()
        ticked = set(request.POST.getlist("channel"))
    else:
        values = _values(rule) if rule else ASKED_FIRST
        ticked = {str(one.public_id) for one in rule.channels.all()} if rule else set()
    standing = for_tenant(request, AlertChannel.objects.standing()).order_by("name")
    return {
        "values": values,
        "measures": AlertRule.Measure.choices,
        "sources": for_tenant(request, Source.objects.all()).order_by("slug"),
        "channels": [(one, str(one.public_id) in ticked) for one in standing],
    }


def _values(rule: AlertRule) -> dict[str, Any]:
    return {
        "measure": rule.measure, "name": rule.name, "high": rule.high, "low": rule.low,
        "source": rule.source.slug if rule.source else "", "kind": rule.kind,
        "cause": rule.fingerprint, "currency": rule.currency, "owner": rule.owner,
        "hold": rule.hold_seconds, "remind": rule.remind_seconds,
        "emails": "\n".join(rule.emails),
    }  # fmt: skip


def _channels(request: OperatorRequest) -> list[AlertChannel]:
    asked = request.POST.getlist("channel")[:CHOSEN_MAX]
    standing = for_tenant(request, AlertChannel.objects.standing())
    known = {str(one.public_id): one for one in standing}
    if unknown := [one for one in asked if one not in known]:
        raise NotUnderstood(f"The form names no channel of this tenant: {unknown[0][:40]!r}.")
    return [known[one] for one in dict.fromkeys(asked)]


def _one(request: OperatorRequest, rows: "QuerySet[Any]", what: str) -> Any:
    found: Model | None = for_tenant(request, rows).first()
    if found is None:
        raise NotUnderstood(f"The form names no {what} of this tenant.")
    return found


def _number(asked: QueryDict, name: str) -> int:
    text = asked.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len("9999999999999999")):
        raise NotUnderstood(f"The rule’s field “{name}” takes a whole number.")
    return int(text)
