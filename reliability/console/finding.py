"""One box: a key, a job, a letter, a delivery or a provider's reference leads to its story."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet

from reliability.console.access import OperatorRequest, for_tenant
from reliability.models import (
    DeadLetter,
    Delivery,
    Job,
    Operation,
    ProcessedKey,
    Receipt,
    StatementLine,
)  # fmt: skip

HITS_MAX = 50
FIND_MAX = 255
NUMBER = re.compile(r"(?:DL-|J-|#)?(\d{1,18})\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """What a text leads to: claims of ours, and lines of statements that name it."""

    keys: list[ProcessedKey]
    lines: list[StatementLine]


def find(request: OperatorRequest, text: str, *, source: str = "") -> Found:
    """Look the text up exactly as given: nothing is trimmed or folded, keys are opaque.

    An event absorbed by an operation leads to the claim of that operation, whose story tells
    both. Each look-up has an index of its own; at most ``HITS_MAX`` hits each.
    """
    ids = set[int]()
    for rows, column in _lookups(request, text):
        ids.update(pk for pk in rows.values_list(column, flat=True)[:HITS_MAX] if pk)
    named = ProcessedKey.objects.filter(pk__in=ids).select_related("source", "job")
    keys = for_tenant(request, named)
    lines = StatementLine.objects.filter(reference=text).select_related("statement__source")
    lines = for_tenant(request, lines).order_by("-pk")
    if source:
        keys = keys.filter(source__slug=source)
        lines = lines.filter(statement__source__slug=source)
    claims = {claim_of(key): None for key in keys.order_by("-pk")[:HITS_MAX]}
    return Found(list(claims), list(lines[:HITS_MAX]))


def claim_of(key: ProcessedKey) -> ProcessedKey:
    """Return the key that claimed this key's operation; most often itself."""
    if not key.absorbed:
        return key
    operation = Operation.objects.filter(
        tenant_id=key.tenant_id, source_id=key.source_id,
        operation_class=key.operation_class, reference=key.operation_reference,
    ).select_related("key__source", "key__job").first()  # fmt: skip
    return operation.key if operation else key


def _lookups(request: OperatorRequest, text: str) -> Iterator[tuple["QuerySet[Any]", str]]:
    def mine(rows: "QuerySet[Any]", **names: Any) -> "QuerySet[Any]":
        return for_tenant(request, rows).filter(**names)

    yield mine(ProcessedKey.objects.all(), key=text), "pk"
    downstream = ProcessedKey.objects.exclude(downstream_key=F("key"))
    yield mine(downstream, downstream_key=text), "pk"
    yield mine(Operation.objects.all(), reference=text), "key"
    if number := NUMBER.match(text):
        yield mine(DeadLetter.objects.all(), pk=int(number[1])), "job__key"
        yield mine(Job.objects.all(), pk=int(number[1])), "key"
    try:
        public_id = uuid.UUID(text)
    except ValueError:
        return
    yield mine(Job.objects.all(), public_id=public_id), "key"
    yield mine(DeadLetter.objects.all(), public_id=public_id), "job__key"
    delivery = mine(Delivery.objects.all(), public_id=public_id)
    yield mine(Receipt.objects.all(), delivery__in=delivery), "key"
