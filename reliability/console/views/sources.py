"""Sources: what comes from where, adding one, its secret, a pause, and a test event."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html

from reliability.claim.intake import no_answer_after_work, set_intake
from reliability.claim.presets import PRESETS
from reliability.claim.sources import Added, Rotated, Wanted, add_source, rotate_secret
from reliability.claim.try_door import Tried, try_door
from reliability.console import source_words as words
from reliability.console.access import OperatorRequest, act, for_tenant, owned, page
from reliability.console.choices import act_of, reasoned
from reliability.console.figures import counted
from reliability.console.filters import NotUnderstood
from reliability.console.lists.sources import PAGE_SIZE, SourceFilter, SourceTable
from reliability.console.once import put_aside, take_out
from reliability.console.pages import show
from reliability.console.paging import paged
from reliability.console.source_form import given_secret, wanted, wanted_intake
from reliability.console.tables import trace_link
from reliability.console.traffic import lately, traffic
from reliability.models import Job, Source, SourceSecret
from reliability.models.acting import Refused
from reliability.reconcile.formats import FORMATS
from reliability.work.holds import pause_source, resume_source

SECRETS_SHOWN = 5
TEST_ID_BYTES = 12


@page(needs="view_source")
def index(request: OperatorRequest) -> HttpResponse:
    """List the tenant's sources with what came lately, newest source first."""
    asked = SourceFilter(request, _sources(request))
    found = asked.found()
    rows = paged(found, "id", request.GET.get("after", ""), size=PAGE_SIZE)
    since = lately(request.tenant, request.now)
    seen = traffic(rows.rows, since)
    context = {
        "filter": asked,
        "page": rows,
        "table": SourceTable(seen, now=request.now, caption="Sources, newest first"),
        "total": counted(found),
        "since": since,
        "paused": counted(found.exclude(paused_at=None)),
    }
    return show(request, "sources/index.html", context)


@page(needs="view_source")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show one source: its address, its scheme in words, its keys, what came lately."""
    source = owned(request, _sources(request), public_id=public_id)
    held = Job.objects.ready().filter(source=source, held=Job.Hold.PAUSED)
    kept = SourceSecret.objects.filter(source=source).order_by("-pk")[:SECRETS_SHOWN]
    context = {
        "source": source,
        "traffic": traffic([source], lately(request.tenant, request.now))[0],
        "held": counted(held),
        "secrets": [(one, bool(one.expires_at and one.expires_at <= request.now))
                    for one in kept],
        "current": next((one.pk for one in kept if one.expires_at is None), ""),
        "shown": take_out(request, _about(source)),
        "test_id": f"test_{secrets.token_hex(TEST_ID_BYTES)}",
        **_in_words(request, source),
    }  # fmt: skip
    return show(request, "sources/detail.html", context)


def _in_words(request: OperatorRequest, source: Source) -> dict[str, Any]:
    return {
        "address": f"{_base(request)}/hooks/{source.endpoint_token}/",
        "scheme": words.scheme_in_words(source),
        "options": list(words.options_in_words(source)),
        "answer": words.answer_in_words(source),
        "never_after_work": no_answer_after_work(source),
        "statement": words.statement_in_words(source),
    }


def _base(request: OperatorRequest) -> str:
    """Return our own address as it is set, else as this request came; for showing alone."""
    return settings.RELIABILITY_BASE_URL or f"{request.scheme}://{request.get_host()}"


@page(needs="add_source")
def new(request: OperatorRequest) -> HttpResponse:
    """Ask for a new source."""
    context = {"presets": PRESETS.values(), "modes": Source.Mode.choices, "formats": FORMATS}
    return show(request, "sources/new.html", context)


@act(needs="add_source")
def add(request: OperatorRequest) -> HttpResponse:
    """Add a source; its page shows a secret made here, once."""
    asked = wanted(request.POST)
    added = _added(request, asked)
    if isinstance(added, Refused):
        messages.error(request, f"{added.why} Nothing has changed.")
        there = _sources(request).filter(slug=asked.slug).first()
        where = ["console:source", there.public_id] if there else ["console:new_source"]
        return redirect(*where)
    _show_once(request, added.source, added.secret)
    return redirect("console:source", added.source.public_id)


def _added(request: OperatorRequest, asked: Wanted) -> Added | Refused:
    secret = given_secret(request.POST)
    if isinstance(secret, Refused):
        return secret
    return add_source(asked, act_of(request), formats=FORMATS, secret=secret)


@act(needs="change_source")
def rotate(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Give a source another secret, for a reason; the one before works for another 24 h."""
    source = owned(request, _sources(request), public_id=public_id)
    reasoned(request, "Another secret needs a reason.")
    rotated = _rotated(request, source)
    if isinstance(rotated, Refused):
        messages.error(request, f"{rotated.why} Nothing has changed.")
    else:
        _show_once(request, source, rotated.secret)
    return redirect("console:source", source.public_id)


def _rotated(request: OperatorRequest, source: Source) -> Rotated | Refused:
    secret = given_secret(request.POST)
    if isinstance(secret, Refused):
        return secret
    try:
        seen = int(request.POST.get("current", ""))
    except ValueError:
        raise NotUnderstood("The form does not say which secret it showed.") from None
    return rotate_secret(source, act_of(request), secret=secret, seen=seen)


def _show_once(request: OperatorRequest, source: Source, secret: str) -> None:
    """Keep a secret made here for the source's page, which shows it once."""
    if secret:
        put_aside(request, _about(source), secret)


def _about(source: Source) -> str:
    return f"source {source.pk}"


@act(needs="change_source")
def pause(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Start nothing of a source's, for a reason; its events are taken in and held."""
    source = owned(request, _sources(request), public_id=public_id)
    reasoned(request, "A pause needs a reason.")
    pause_source(source, act_of(request))
    return redirect("console:source", source.public_id)


@act(needs="change_source")
def resume(request: OperatorRequest, public_id: str) -> HttpResponse:
    """End a source's pause, for a reason."""
    source = owned(request, _sources(request), public_id=public_id)
    reasoned(request, "Ending a pause needs a reason.")
    resume_source(source, act_of(request))
    return redirect("console:source", source.public_id)


@act(needs="change_source")
def intake(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Change when a source answers and whether it holds suspected replays, for a reason."""
    source = owned(request, _sources(request), public_id=public_id)
    reasoned(request, "A change of how events are taken in needs a reason.")
    done = set_intake(source, wanted_intake(request.POST), act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing has changed.")
    return redirect("console:source", source.public_id)


@act(needs="change_source")
def send_test(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Send a signed event to the source's own address and say what the door answered."""
    source = owned(request, _sources(request), public_id=public_id)
    match try_door(source, act_of(request), event_id=_event_id(request)):
        case Refused(why):
            messages.error(request, why)
        case Tried(key, status, said):
            answer = "The door answered {} {} {}"
            tell = messages.success if status < 300 else messages.error  # noqa: PLR2004 - HTTP
            trace = trace_link(key, "See its trace", plain=True)
            tell(request, format_html(answer, status, said, trace))
    return redirect("console:source", source.public_id)


def _event_id(request: OperatorRequest) -> str:
    """Return the id the page made: a second click sends the same event."""
    event_id = request.POST.get("event_id", "")
    name, _, digits = event_id.partition("_")
    try:
        fits = name == "test" and len(bytes.fromhex(digits)) == TEST_ID_BYTES
    except ValueError:
        fits = False
    if not fits:
        raise NotUnderstood("The form names no test event.")
    return event_id


def _sources(request: OperatorRequest) -> QuerySet[Source]:
    rows = Source.objects.filter(internal=False).select_related("destination")
    return for_tenant(request, rows)
