"""The list of dead letters, and acts on the ones ticked in it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from reliability.console import risk, saved_views
from reliability.console.access import OperatorRequest, act, for_tenant, page
from reliability.console.choices import (
    Chosen,
    act_of,
    chosen,
    refusals,
    way_back,
)  # fmt: skip
from reliability.console.filters import NotUnderstood
from reliability.console.lists.dead_letters import DeadLetterTable, with_attempts
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.pages import show, show_too_slow
from reliability.console.paging import paged
from reliability.console.parts import number, span
from reliability.console.searching import TooSlow, bounded
from reliability.models import DeadLetter
from reliability.work import dead_letters

TOLD_MAX = 5
"""Refusals told one by one; the rest are counted."""


REFRESH = "every 30s"


@page(needs="view_deadletter")
def index(request: OperatorRequest) -> HttpResponse:
    """List dead letters, open ones unless asked otherwise, newest first."""
    letters = DeadLetter.objects.select_related("source", "job__key")
    asked = DeadLetterFilter(request, for_tenant(request, letters))
    try:
        with bounded():
            context = _found(request, asked)
    except TooSlow:
        return show_too_slow(request, asked)
    table: DeadLetterTable = context["table"]
    if not request.member.may & {"requeue_deadletter", "discard_deadletter"}:
        table.columns.hide("pick")
    if context["page"].first and not context["matching"]:
        table.refresh = REFRESH
    return show(request, "dead_letters/index.html", context)


def _found(request: OperatorRequest, asked: DeadLetterFilter) -> dict[str, Any]:
    found = asked.found()
    rows = paged(with_attempts(found), "buried_at", request.GET.get("after", ""))
    total = risk.at_risk(found)
    return {
        "filter": asked,
        "page": rows,
        "table": DeadLetterTable(
            rows.rows, now=request.now, caption="Dead letters, newest first"
        ),
        "money": risk.money_told(total),
        "total": total.letters,
        "matching": _all_matching(request),
        "ever": bool(rows.rows) or asked.queryset.exists(),
        "saved": saved_views.shown(request),
    }


def _all_matching(request: OperatorRequest) -> bool:
    """Read the second step of a selection: not the page, but all that the filter finds."""
    chosen_by = request.GET.get("select", "")
    if chosen_by not in {"", "matching"}:
        raise NotUnderstood(f"“select” cannot be {chosen_by!r}.")
    return chosen_by == "matching"


@act(needs="requeue_deadletter")
def preview_requeue(request: OperatorRequest) -> HttpResponse:
    """Show what a requeue of the ticked letters would do; changes nothing."""
    return _preview(request, verb="requeue")


@act(needs="discard_deadletter")
def preview_discard(request: OperatorRequest) -> HttpResponse:
    """Show what a discard of the ticked letters would do; changes nothing."""
    return _preview(request, verb="discard")


def _preview(request: OperatorRequest, *, verb: str) -> HttpResponse:
    picked = chosen(request)
    acted = [one for one in picked if _would(one, verb, request) == WILL]
    total = risk.at_risk(DeadLetter.objects.filter(pk__in=[one.letter.pk for one in acted]))
    context = {
        "verb": verb,
        "picked": [(one, _would(one, verb, request)) for one in picked],
        "acted": acted,
        "money": risk.money_told(total),
        "back": way_back(request),
    }
    return show(request, "dead_letters/confirm.html", context)


WILL, MOVED_ON, CLOSED = "will", "moved on", "window closed"


def _would(one: Chosen, verb: str, request: OperatorRequest) -> str:
    if not one.fresh:
        return MOVED_ON
    closes_at = one.letter.job.not_after
    if verb == "requeue" and closes_at and closes_at <= request.now:
        return CLOSED
    return WILL


@act(needs="requeue_deadletter")
def requeue(request: OperatorRequest) -> HttpResponse:
    """Requeue the ticked letters as they were seen."""
    picked = chosen(request)
    moved = dead_letters.requeue([one.seen for one in picked], act_of(request))
    if moved.letter_ids and moved.starts_at:
        starts = span(moved.starts_at - request.now)
        many = len(moved.letter_ids)
        messages.success(request, f"Requeued {number(many)}. They start in {starts}.")
    return _told(request, "Not requeued", list(refusals(moved, picked)))


@act(needs="discard_deadletter")
def discard(request: OperatorRequest) -> HttpResponse:
    """Discard the ticked letters as they were seen, for a reason."""
    picked, asked = chosen(request), act_of(request)
    if not asked.reason:
        raise NotUnderstood("A discard needs a reason.")
    moved = dead_letters.discard([one.seen for one in picked], asked)
    if moved.letter_ids:
        many = number(len(moved.letter_ids))
        messages.success(request, f"Discarded {many}. Each can be restored from its own page.")
    return _told(request, "Not discarded", list(refusals(moved, picked)))


def _told(request: OperatorRequest, lead: str, refused: Sequence[str]) -> HttpResponse:
    tell = partial(messages.error, request)
    for why in refused[:TOLD_MAX]:
        tell(f"{lead}. {why} Nothing has changed there.")
    if len(refused) > TOLD_MAX:
        tell(f"{lead}: {number(len(refused) - TOLD_MAX)} more, for the same reasons.")
    back = way_back(request)
    return redirect(reverse("console:dead_letters") + (f"?{back}" if back else ""))
