"""Nothing lost: what was accepted equals what its jobs are doing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import JSONObject

from reliability.models import Job, ProcessedKey, Stretch, Tenant
from reliability.models.claim import PURGED
from reliability.models.stretch import KEYS, STATES


@dataclass(frozen=True)
class Conservation:
    """One tenant's events: accepted from keys, the rest from jobs."""

    accepted: int
    purged: int
    states: dict[str, int]
    counted_at: datetime | None = None
    """When the oldest of the counts behind it was taken; ``None``: all of it now."""

    @property
    def done(self) -> int:
        """Jobs done, with those whose row was removed after its time."""
        return self.states["done"] + self.purged

    @property
    def missing(self) -> int:
        """Accepted events no job speaks for. Anything but zero is an alarm."""
        return self.accepted - self.purged - sum(self.states.values())


def conservation(tenant: Tenant) -> Conservation:
    """Count a tenant's accepted keys against its jobs.

    A key absorbed by an operation that another key had claimed is that key's duplicate and is not
    counted. The newest keys are counted now, in one statement and so at one moment; the stretches
    before them as the sweep last did, each at one moment of its own.
    """
    newest = Stretch.objects.newest()
    told = _live(tenant, first=(newest + 1) * KEYS)
    if newest < 0:
        return told
    sums = {name: Sum(name) for name in ("accepted", "purged", *STATES)}
    kept = Stretch.objects.filter(tenant=tenant, number__lte=newest).aggregate(
        **sums, at=Min("counted_at")
    )
    return Conservation(
        told.accepted + (kept["accepted"] or 0),
        told.purged + (kept["purged"] or 0),
        {state: told.states[state] + (kept[state] or 0) for state in STATES},
        kept["at"],
    )


def _live(tenant: Tenant, *, first: int) -> Conservation:
    keys = ProcessedKey.objects.accepted().filter(tenant=OuterRef("pk"), pk__gte=first)
    jobs = Job.objects.filter(tenant=OuterRef("pk"), key__gte=first)
    found = (
        Tenant.objects.filter(pk=tenant.pk)
        .values(
            keys=_one(keys, accepted=Count("pk"), purged=Count("pk", filter=PURGED)),
            jobs=_one(jobs, **{s: Count("pk", filter=Q(state=s)) for s in STATES}),
        )
        .get()
    )
    ledger = found["keys"] or {"accepted": 0, "purged": 0}
    states = found["jobs"] or dict.fromkeys(STATES, 0)
    return Conservation(ledger["accepted"], ledger["purged"], states)


def _one(rows: "QuerySet[Any]", **counts: Count) -> Subquery:
    grouped = rows.order_by().values("tenant").annotate(counts=JSONObject(**counts))
    return Subquery(grouped.values("counts"))
