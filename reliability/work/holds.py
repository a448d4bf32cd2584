"""Kinds that a person paused: their ready jobs are held, and let go when the pause ends."""

import time
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from reliability import dispatch, sql
from reliability.conf import conf
from reliability.models import AuditEntry, Job, KindPause
from reliability.work.dead_letters import Act

KEPT_SECONDS = 1.0


@dataclass
class _Known:
    """The pauses as last read by this process."""

    pauses: frozenset[tuple[int, str]] = frozenset()
    until: float = field(default=0.0)


_known = _Known()


def paused_kinds() -> frozenset[tuple[int, str]]:
    """Return (tenant id, kind) of every pause, read at most once a second per process."""
    if time.monotonic() >= _known.until:
        _known.pauses = frozenset(KindPause.objects.values_list("tenant_id", "kind"))
        _known.until = time.monotonic() + KEPT_SECONDS
    return _known.pauses


def pause(kind: str, act: Act) -> int:
    """Let no job of ``kind`` start in the act's tenant; return how many are held by now.

    What runs goes on to its end; within a second every worker holds what it would start. Pausing
    twice is harmless.
    """
    with transaction.atomic(using=sql.database().alias):
        _, new = KindPause.objects.get_or_create(
            tenant=act.tenant, kind=kind,
            defaults={
                "paused_at": timezone.now(), "paused_by": act.actor, "reason": act.reason,
            },
        )  # fmt: skip
        if new:
            _record(act, "pause kind", kind)
    _known.until = 0.0
    ready = Job.objects.ready().filter(tenant=act.tenant, kind=kind, held="")
    return _in_batches(ready, Job.Hold.PAUSED)


def unpause(kind: str, act: Act) -> int:
    """End a pause; return how many jobs may start again. Ending none is harmless."""
    with transaction.atomic(using=sql.database().alias):
        ended, _ = KindPause.objects.filter(tenant=act.tenant, kind=kind).delete()
        if ended:
            _record(act, "unpause kind", kind)
    _known.until = 0.0
    freed = _in_batches(_free_again().filter(tenant=act.tenant, kind=kind), Job.Hold.NONE)
    for queue in ("local", "outside"):
        dispatch.ring(queue)
    return freed


def free_unpaused(limit: int) -> int:
    """Let go up to ``limit`` held jobs whose kind and source are not paused; for the sweep."""
    return _change(_free_again(), Job.Hold.NONE, limit)


def _free_again() -> QuerySet[Job]:
    pauses = KindPause.objects.filter(tenant=OuterRef("tenant"), kind=OuterRef("kind"))
    held = Job.objects.ready().filter(held=Job.Hold.PAUSED, source__paused_at=None)
    return held.exclude(Exists(pauses))


def _in_batches(jobs: QuerySet[Job], held: str) -> int:
    changed, limit = 0, conf().sweep_batch_max
    while some := _change(jobs, held, limit):
        changed += some
    return changed


def _change(jobs: QuerySet[Job], held: str, limit: int) -> int:
    """Set the hold of up to ``limit`` jobs, passing over those that others have locked."""
    with transaction.atomic(using=sql.database().alias):
        locked = jobs.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
        return Job.objects.filter(
            pk__in=list(locked.values_list("pk", flat=True)[:limit])
        ).update(held=held)


def _record(act: Act, name: str, kind: str) -> None:
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="kind", about_id=kind,
        reason=act.reason,
    )  # fmt: skip
