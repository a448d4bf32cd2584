"""Silences: which are in force or planned, which are over, planning and ending one."""

import uuid
from datetime import UTC, datetime
from typing import TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.alerts.silences import Window, end_silence, in_words, silence
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.models import AlertRule, Silence, Source
from reliability.models.acting import Refused

M = TypeVar("M", bound=Model)

SHOWN_MAX = 100
KIND_MAX = 200


@page(needs="view_alert")
def index(request: OperatorRequest) -> HttpResponse:
    """List silences: those in force and to come, then those that are over."""
    rows = Silence.objects.select_related("source", "rule")
    over = for_tenant(request, rows.over(request.now))
    standing = for_tenant(request, rows.standing(request.now))
    current = standing.order_by("from_at", "pk")[:SHOWN_MAX]
    context = {
        "current": [(one, in_words(one), one.from_at <= request.now) for one in current],
        "past": [
            (one, in_words(one)) for one in over.order_by("-until_at", "-pk")[:SHOWN_MAX]
        ],
        "sources": for_tenant(request, Source.objects.all()).order_by("slug"),
        "rules": for_tenant(request, AlertRule.objects.all()).order_by("pk"),
    }
    return show(request, "alerts/silences.html", context)


@act(needs="add_silence")
def add(request: OperatorRequest) -> HttpResponse:
    """Plan a silence."""
    done = silence(_window(request), act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:silences")


def _window(request: OperatorRequest) -> Window:
    asked = request.POST
    source = rule = None
    if asked.get("source"):
        source = _one(request, Source.objects.filter(slug=asked["source"]), "source")
    if asked.get("rule"):
        rule = _one(request, AlertRule.objects.filter(public_id=_id(asked["rule"])), "rule")
    return Window(
        from_at=_moment(asked.get("from", "")),
        until_at=_moment(asked.get("until", "")),
        source=source,
        kind=asked.get("kind", "").strip()[:KIND_MAX],
        rule=rule,
    )


@act(needs="add_silence")
def end(request: OperatorRequest, public_id: str) -> HttpResponse:
    """End a silence now."""
    planned = owned(request, Silence.objects.all(), public_id=public_id)
    done = end_silence(planned, act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:silences")


def _one(request: OperatorRequest, rows: "QuerySet[M]", what: str) -> "M":
    found = for_tenant(request, rows).first()
    if found is None:
        raise NotUnderstood(f"The form names no {what} of this tenant.")
    return found


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise NotUnderstood("The form names no rule of this tenant.") from None


def _moment(text: str) -> datetime:
    """Read a time of the form, which is UTC and says so."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise NotUnderstood("A silence names when it begins and when it ends.") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
