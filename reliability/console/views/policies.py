"""Kinds and their policies: what a repeat meets, how long the worst takes, and pausing one."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from reliability.console import policies
from reliability.console.access import OperatorRequest, act, page
from reliability.console.choices import act_of
from reliability.console.defaults import every_setting
from reliability.console.filters import NotUnderstood
from reliability.console.herd import CLIENTS, RETURNS, herds
from reliability.console.pages import show
from reliability.console.parts import number
from reliability.work.holds import pause, unpause

KIND_MAX = 255


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """List every kind with its worst case against its window, and show what jitter does."""
    rows = policies.every_row(request)
    context: dict[str, Any] = {
        "rows": rows,
        "say": _said(rows),
        "herds": herds(),
        "clients": CLIENTS,
        "returns": RETURNS,
    }
    return show(request, "policies/index.html", context)


@page(needs="view_job")
def kind(request: OperatorRequest) -> HttpResponse:
    """Show one kind: sink, schedule, worst case term by term, limit, what waits."""
    unknown = set(request.GET) - {"kind"}
    if unknown:
        raise NotUnderstood(f"Parameter not understood: “{min(unknown)}”.")
    row = policies.row_of(request, request.GET.get("kind", ""))
    if row is None:
        raise Http404("No such kind.")
    context = {"row": row, "owners": policies.owners(request)}
    return show(request, "policies/kind.html", context)


@page(needs="view_job")
def limits(request: OperatorRequest) -> HttpResponse:
    """Show the settings in force beside the shipped ones, and every kind's limits."""
    context = {"settings": list(every_setting()), "rows": policies.every_row(request)}
    return show(request, "policies/limits.html", context)


@act(needs="pause_work")
def pause_kind(request: OperatorRequest) -> HttpResponse:
    """Hold what is ready of a kind; what runs goes on to its end."""
    name = _kind(request)
    held = pause(name, act_of(request))
    messages.success(request, f"{name} is paused; {number(held)} more held.")
    return _back(name)


@act(needs="pause_work")
def resume_kind(request: OperatorRequest) -> HttpResponse:
    """Let a kind's jobs go on."""
    name = _kind(request)
    freed = unpause(name, act_of(request))
    messages.success(request, f"{name} is not paused; {number(freed)} may start again.")
    return _back(name)


def _kind(request: OperatorRequest) -> str:
    """Read which kind is meant; one that neither this process nor the tenant knows is a 404."""
    name = request.POST.get("kind", "")
    if not name or len(name) > KIND_MAX or "\0" in name:
        raise NotUnderstood("The form names no kind.")
    if not request.POST.get("reason", "").strip():
        raise NotUnderstood("Give a reason; it is written to the audit trail.")
    if policies.row_of(request, name) is None:
        raise Http404("No such kind.")
    return name


def _back(name: str) -> HttpResponse:
    return redirect(f"{reverse('console:kind')}?{urlencode({'kind': name})}")


def _said(rows: list[policies.Row]) -> str:
    """Say in one sentence whether every kind's schedule fits, and what is paused."""
    known = [row for row in rows if row.kind]
    refused = [row.name for row in known if row.refused]
    if not known:
        said = "No handler is known to this process."
    elif refused:
        said = f"{len(refused)} of {len(known)} kinds would be refused at start: {', '.join(refused)}."
    else:
        kinds = (
            "The one kind finishes" if len(known) == 1 else f"All {len(known)} kinds finish"
        )
        said = f"{kinds} inside the window of the system behind."
    paused = [row.name for row in rows if row.pause]
    return f"{said} Paused: {', '.join(paused)}." if paused else said
