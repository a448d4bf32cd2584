"""What happened to this key: one box, the whole story."""

from itertools import groupby

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, page
from reliability.console.answers import answers_of
from reliability.console.filters import NotUnderstood
from reliability.console.finding import FIND_MAX, find
from reliability.console.pages import show
from reliability.console.trail import Moment, lines_only, story

KNOWN = {"find", "source"}


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """Tell the story of what was asked for; several hits make a list, none says so."""
    unknown = set(request.GET) - KNOWN
    if unknown:
        raise NotUnderstood(f"Parameter not understood: “{min(unknown)}”.")
    text = request.GET.get("find", "")
    if not text:
        return show(request, "trace/empty.html", {"find": ""})
    if len(text) > FIND_MAX or "\0" in text:
        raise NotUnderstood(f"A key has at most {FIND_MAX} bytes, all of them text.")
    found = find(request, text, source=request.GET.get("source", ""))
    context = {"find": text, "found": found}
    match found.keys:
        case [key]:
            told = story(key)
            context |= {"story": told, "days": _by_day(told.moments)}
            context["answers"] = answers_of(told.job, redacted=True) if told.job else []
            return show(request, "trace/story.html", context)
        case [] if found.lines:
            moments = lines_only(found.lines)
            return show(request, "trace/lines.html", context | {"days": _by_day(moments)})
        case []:
            return show(request, "trace/empty.html", context)
        case _:
            return show(request, "trace/hits.html", context)


def _by_day(moments: list[Moment]) -> list[tuple[object, list[Moment]]]:
    days = groupby(moments, key=lambda moment: moment.at.date())
    return [(day, list(those)) for day, those in days]
