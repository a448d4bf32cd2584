"""The filtered list of dead letters as a file; each export is on record."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

from reliability.console import letter_export
from reliability.console.access import OperatorRequest, act, for_tenant
from reliability.console.choices import act_of
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.pages import show_too_slow
from reliability.console.searching import TooSlow, bounded
from reliability.models import DeadLetter


@act(needs="view_deadletter")
def as_csv(request: OperatorRequest) -> HttpResponseBase:
    """Export what the list shows for a spreadsheet."""
    return _file(request, "csv", letter_export.as_csv, "text/csv; charset=utf-8")


@act(needs="view_deadletter")
def as_json(request: OperatorRequest) -> HttpResponseBase:
    """Export what the list shows for a program."""
    return _file(request, "json", letter_export.as_json, "application/json")


def _file(
    request: OperatorRequest,
    ending: str,
    written: Callable[[Any], Iterator[bytes]],
    content_type: str,
) -> HttpResponseBase:
    letters = DeadLetter.objects.select_related("source", "job__key")
    query = request.POST.get("asked", "")
    asked = DeadLetterFilter(request, for_tenant(request, letters), query)
    try:
        with bounded():
            found = asked.found()
            letter_export.begin(
                request, found, act_of(request), file_format=ending, asked=asked.kept
            )
    except TooSlow:
        return show_too_slow(request, asked)
    name = f"dead_letters_{request.now:%Y-%m-%d_%H%M}.{ending}"
    return StreamingHttpResponse(
        written(found),
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
