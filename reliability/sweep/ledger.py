"""Count the key ledger a few stretches at a time: the same work a pass, however long it grows."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max, Min

from reliability import sql
from reliability.conf import conf
from reliability.models import ProcessedKey, Stretch
from reliability.models.stretch import KEYS


@dataclass(frozen=True)
class _Counted:
    accepted: int


def count_ledger(now: datetime) -> int:
    """Count stretches that are full, then those counted longest ago; return how many were.

    At most ``conf().stretches_per_pass`` of each. The newest keys stand in no stretch: whoever
    asks counts them live. Safe to run twice at once.
    """
    limit = conf().stretches_per_pass
    oldest = Stretch.objects.values_list("number").annotate(at=Min("counted_at"))
    again = [number for number, _ in oldest.order_by("at", "number")[:limit]]
    fresh = _full(limit)
    for number in fresh + again:
        with transaction.atomic(using=sql.database().alias):
            sql.rows_planned_anew(
                "count_stretch", _Counted, number=number, first=number * KEYS,
                last=(number + 1) * KEYS - 1, now=now,
            )  # fmt: skip
    return len(fresh) + len(again)


def _full(limit: int) -> list[int]:
    """Return the first stretches that were never counted and get no further keys."""
    newest = ProcessedKey.objects.aggregate(pk=Max("pk"))["pk"] or 0
    found: list[int] = []
    number = Stretch.objects.newest()
    while len(found) < limit:
        later = ProcessedKey.objects.filter(pk__gte=(number + 1) * KEYS)
        first = later.aggregate(pk=Min("pk"))["pk"]
        if first is None or first // KEYS >= newest // KEYS:
            break
        number = first // KEYS
        found.append(number)
    return found
