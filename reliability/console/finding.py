"""One box: a key, a job, a letter, a delivery or a provider's reference leads to its story."""

from dataclasses import dataclass
from functools import partial

from reliability.console.access import OperatorRequest, for_tenant
from reliability.models import ProcessedKey, StatementLine
from reliability.models.finding import claims_named

HITS_MAX = 50
FIND_MAX = 255


@dataclass(frozen=True)
class Found:
    """What a text leads to: claims of ours, and lines of statements that name it."""

    keys: list[ProcessedKey]
    lines: list[StatementLine]


def find(request: OperatorRequest, text: str, *, source: str = "") -> Found:
    """Look the text up in this tenant; at most ``HITS_MAX`` hits of a kind."""
    keys = claims_named(text, partial(for_tenant, request), most=HITS_MAX)
    lines = StatementLine.objects.filter(reference=text).select_related("statement__source")
    lines = for_tenant(request, lines).order_by("-pk")
    if source:
        keys = [key for key in keys if key.source.slug == source]
        lines = lines.filter(statement__source__slug=source)
    return Found(keys, list(lines[:HITS_MAX]))
