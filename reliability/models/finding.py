"""What a text leads to: the claims of a key, a reference, a job, a letter or a delivery."""

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import F, QuerySet

from reliability.models.claim import Operation, ProcessedKey, Receipt
from reliability.models.work import DeadLetter, Job

NUMBER = re.compile(r"(?:DL-|J-|#)?(\d{1,18})\Z", re.IGNORECASE)

Rows = QuerySet[Any]
Scoped = Callable[[Rows], Rows]
"""Narrows rows to those that the asker may see."""


def claims_named(text: str, scoped: Scoped, *, most: int) -> list[ProcessedKey]:
    """Look the text up exactly as given: nothing is trimmed or folded, keys are opaque.

    An event absorbed by an operation leads to the claim of that operation, whose story tells
    both. Each look-up has an index of its own and gives at most ``most`` rows. Newest first.
    """
    ids = {
        pk
        for rows, column in _lookups(text)
        for pk in scoped(rows).values_list(column, flat=True)[:most]
    }
    named = scoped(ProcessedKey.objects.filter(pk__in=ids))
    keys = named.select_related("tenant", "source", "job").order_by("-pk")[:most]
    return list({claim_of(key): None for key in keys})


def claim_of(key: ProcessedKey) -> ProcessedKey:
    """Return the key that claimed this key's operation; most often itself."""
    if not key.absorbed:
        return key
    operation = Operation.objects.filter(
        tenant_id=key.tenant_id, source_id=key.source_id,
        operation_class=key.operation_class, reference=key.operation_reference,
    ).select_related("key__tenant", "key__source", "key__job").first()  # fmt: skip
    return operation.key if operation else key


def _lookups(text: str) -> Iterator[tuple[Rows, str]]:
    yield ProcessedKey.objects.filter(key=text), "pk"
    downstream = ProcessedKey.objects.exclude(downstream_key=F("key"))
    yield downstream.filter(downstream_key=text), "pk"
    yield Operation.objects.filter(reference=text), "key"
    if number := NUMBER.match(text):
        yield DeadLetter.objects.filter(pk=int(number[1])), "job__key"
        yield Job.objects.filter(pk=int(number[1])), "key"
    try:
        public_id = uuid.UUID(text)
    except ValueError:
        return
    yield Job.objects.filter(public_id=public_id), "key"
    yield DeadLetter.objects.filter(public_id=public_id), "job__key"
    yield Receipt.objects.filter(delivery__public_id=public_id), "key"
