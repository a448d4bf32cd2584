"""Nothing lost: what was accepted equals what its jobs are doing."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from reliability.models import Job, ProcessedKey, Tenant
from reliability.models.claim import PURGED

STATES = tuple(Job.State.values)


@dataclass(frozen=True)
class Conservation:
    """One tenant's events, counted in one statement: accepted from keys, the rest from jobs."""

    accepted: int
    purged: int
    states: dict[str, int]

    @property
    def done(self) -> int:
        """Jobs done, with those whose row was removed after its time."""
        return self.states["done"] + self.purged

    @property
    def missing(self) -> int:
        """Accepted events no job speaks for. Anything but zero is an alarm."""
        return self.accepted - self.purged - sum(self.states.values())


def conservation(tenant: Tenant) -> Conservation:
    """Count a tenant's accepted keys against its jobs, at one moment.

    A key absorbed by an operation that another key had claimed is that key's duplicate and is not
    counted. One statement, hence one snapshot; it reads every row of the tenant.
    """
    keys = ProcessedKey.objects.accepted().filter(tenant=OuterRef("pk"))
    jobs = Job.objects.filter(tenant=OuterRef("pk"))
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
