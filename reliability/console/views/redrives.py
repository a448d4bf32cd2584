"""Redrives to look at: the list, one with its dry run or its progress, and its letters."""

from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from reliability.conf import conf
from reliability.console.access import OperatorRequest, for_tenant, owned, page
from reliability.console.dry_run import dry_run, progress, repeats
from reliability.console.figures import counted
from reliability.console.filters import NotUnderstood
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.lists.redrives import (
    RedriveFilter,
    RedriveLetterFilter,
    RedriveLetterTable,
    RedriveTable,
    with_letters,
)
from reliability.console.pages import show, show_list
from reliability.console.paging import paged
from reliability.models import DeadLetter, Redrive, RedriveMember
from reliability.work.redrive import second_person

FAILED_SHOWN = 20


@page(needs="view_deadletter")
def index(request: OperatorRequest) -> HttpResponse:
    """List redrives, the newest first."""
    redrives = with_letters(for_tenant(request, Redrive.objects.all()))
    asked = RedriveFilter(request, redrives)
    return show_list(
        request, asked, RedriveTable, by="cutoff_at", template="redrives/index.html"
    )


@page(needs="view_deadletter")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show the dry run of a frozen set, or the progress of a started redrive."""
    redrive = owned(request, Redrive.objects.all(), public_id=public_id)
    if redrive.state == Redrive.State.FROZEN:
        return show(request, "redrives/confirm.html", _preview(request, redrive))
    context = {"redrive": redrive, "progress": progress(redrive), "now": request.now}
    if request.htmx:
        return render(request, "console/redrives/_progress.html", context)
    return show(request, "redrives/detail.html", context | _around(redrive))


@page(needs="view_deadletter")
def letters(request: OperatorRequest, public_id: str) -> HttpResponse:
    """List the letters of a redrive, the newest first."""
    redrive = owned(request, Redrive.objects.all(), public_id=public_id)
    asked = RedriveLetterFilter(request, redrive.members.select_related("letter__job__key"))
    found = asked.found()
    rows = paged(found, "letter_id", request.GET.get("after", ""))
    context = {
        "redrive": redrive,
        "filter": asked,
        "page": rows,
        "table": RedriveLetterTable(
            rows.rows, now=request.now, caption="Letters, newest first"
        ),
        "total": counted(found),
    }
    return show(request, "redrives/letters.html", context)


def _preview(request: OperatorRequest, redrive: Redrive) -> dict[str, Any]:
    return {
        "redrive": redrive,
        "dry": dry_run(redrive),
        "newer": counted(_newer(request, redrive)),
        "repeats": repeats(redrive),
        "needs_second": second_person(redrive, include_cannot_tell=True),
        "conf": conf(),
        "paces": Redrive.Pace.choices,
        "filters": QueryDict(redrive.asked).items(),
    }


def _newer(request: OperatorRequest, redrive: Redrive) -> Any:
    """Choose the open letters that match the filter but came after the set was frozen."""
    mine = for_tenant(request, DeadLetter.objects.all())
    try:
        found = DeadLetterFilter(request, mine, redrive.asked).found()
    except NotUnderstood:  # frozen from the command line, or by a filter that is gone
        return mine.none()
    return found.filter(buried_at__gt=redrive.cutoff_at, status=DeadLetter.Status.OPEN)


def _around(redrive: Redrive) -> dict[str, Any]:
    """What stands around the progress: letters that failed again, and what was frozen."""
    after = DeadLetter.objects.filter(job=OuterRef("job_id"), round=OuterRef("round") + 1)
    failed = redrive.members.filter(outcome=RedriveMember.Outcome.FAILED)
    newest = failed.annotate(now_is=Subquery(after.values("pk")[:1])).order_by("-settled_at")
    members = list(newest.select_related("letter")[:FAILED_SHOWN])
    again = DeadLetter.objects.select_related("job__key").in_bulk(
        [member.now_is for member in members if member.now_is]
    )
    return {
        "failed": [(one.letter, again[one.now_is]) for one in members if one.now_is in again],
        "dry": dry_run(redrive),
        "filters": QueryDict(redrive.asked).items(),
    }
