"""Destinations: list, page, add and change by an admin, pause and resume by an operator."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.console import destinations
from reliability.console.access import OperatorRequest, act, owned, page
from reliability.console.answers import latest_answers
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.console.parts import number
from reliability.models import Destination
from reliability.models.acting import Refused
from reliability.models.destination import CONCURRENCY_MAX
from reliability.work.destination_acts import (
    Added,
    Wanted,
    add_destination,
    change_destination,
)
from reliability.work.holds import pause_destination, unpause_destination

FIELD_MAX = 2_000


@page(needs="view_source")
def index(request: OperatorRequest) -> HttpResponse:
    """List destinations with breaker, concurrency and pause."""
    return _list(request)


@page(needs="view_source")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show one destination: how it stands, what became of the last day, what it answered."""
    return _detail(request, _one(request, public_id))


@act(needs="add_source")
def add(request: OperatorRequest) -> HttpResponse:
    """Add a destination; its signing secret is on the page that comes back, and nowhere else."""
    asked = request.POST
    match add_destination(
        asked.get("slug", "")[:FIELD_MAX], _wanted(request), act_of(request)
    ):
        case Added(made, secret):
            return _detail(request, made, secret=secret)
        case Refused(why):
            return _list(request, error=f"{why} Nothing was saved.", asked=asked)


@act(needs="change_source")
def change(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Change a destination; an empty URL keeps the one it has."""
    destination = _one(request, public_id)
    done = change_destination(
        destination, _wanted(request, kept=destination.url), act_of(request)
    )
    if isinstance(done, Refused):
        return _detail(request, destination, error=f"{done.why} Nothing was saved.")
    messages.success(request, f"{done.slug} is saved.")
    return _back(done)


@act(needs="pause_work")
def pause(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Hold what would be sent to this destination."""
    destination = _one(request, public_id)
    held = pause_destination(destination, _with_reason(request))
    messages.success(request, f"{destination.slug} is paused; {number(held)} more held.")
    return _back(destination)


@act(needs="pause_work")
def resume(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Send to this destination again."""
    destination = _one(request, public_id)
    freed = unpause_destination(destination, _with_reason(request))
    said = f"{destination.slug} is not paused; {number(freed)} may start again."
    messages.success(request, said)
    return _back(destination)


def _one(request: OperatorRequest, public_id: str) -> Destination:
    return owned(request, Destination.objects.all(), public_id=public_id)


def _back(destination: Destination) -> HttpResponse:
    return redirect("console:destination", destination.public_id)


def _with_reason(request: OperatorRequest) -> Any:
    said = act_of(request)
    if not said.reason:
        raise NotUnderstood("Give a reason; it is written to the audit trail.")
    return said


def _wanted(request: OperatorRequest, *, kept: str = "") -> Wanted:
    asked = request.POST
    try:
        return Wanted(
            url=asked.get("url", "").strip()[: FIELD_MAX + 1] or kept,
            concurrency_max=int(asked.get("concurrency", "8")[:6]),
            completion_seconds=int(asked.get("completion", "3600")[:9]),
            rules=tuple(asked.get("rules", "")[:FIELD_MAX].split()),
        )
    except ValueError:
        raise NotUnderstood("Concurrency and completion are whole numbers.") from None


def _list(request: OperatorRequest, *, error: str = "", asked: Any = None) -> HttpResponse:
    rows = destinations.standings(request)
    context = {
        "rows": rows,
        "say": _said(rows),
        "error": error,
        "asked": asked or {"concurrency": "8", "completion": "3600"},
        "concurrency_max": CONCURRENCY_MAX,
    }
    return show(request, "destinations/index.html", context, status=400 if error else 200)


def _detail(
    request: OperatorRequest, one: Destination, *, secret: str = "", error: str = ""
) -> HttpResponse:
    context = {
        "one": one,
        "standing": destinations.standing(one, request.now),
        "day": destinations.day_of(one, request.now),
        "per_source": destinations.per_source(one),
        "answers": latest_answers(one),
        "rules": " ".join(f"{status}={then}" for status, then in sorted(one.rules.items())),
        "concurrency_max": CONCURRENCY_MAX,
        "secret": secret,
        "error": error,
    }
    return show(request, "destinations/detail.html", context, status=400 if error else 200)


def _said(rows: list[destinations.Standing]) -> str:
    """Say in one sentence whether everything can be sent."""
    if not rows:
        return "No destination: events are worked by handlers here."
    paused = [one.destination.slug for one in rows if one.destination.paused_at]
    left = [one.destination.slug for one in rows if one.breaker.state == "stopped"]
    said = [f"Paused: {', '.join(paused)}."] if paused else []
    if left:
        said.append(f"Left alone for a while, for they keep failing: {', '.join(left)}.")
    return " ".join(said) or "Events go out to every destination."
