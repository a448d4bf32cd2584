"""Kinds, sources and destinations that a person paused: their ready jobs are held until it ends."""

import time
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from reliability import dispatch, sql
from reliability.conf import conf
from reliability.models import AuditEntry, Destination, Job, KindPause, Source
from reliability.work.dead_letters import Act
from reliability.work.destinations import KIND as FORWARDED
from reliability.work.lease import Leased

KEPT_SECONDS = 1.0


@dataclass(frozen=True)
class Pauses:
    """What is paused: (tenant id, kind), sources, and the sources whose destination is."""

    kinds: frozenset[tuple[int, str]] = frozenset()
    sources: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()

    def hold(self, job: Leased) -> bool:
        """Tell whether a job may not start for now."""
        sent_on = job.kind == FORWARDED and job.source_id in self.sources
        stopped = job.source_id in self.stopped
        return sent_on or stopped or (job.tenant_id, job.kind) in self.kinds


@dataclass
class _Known:
    """The pauses as last read by this process."""

    pauses: Pauses = field(default_factory=Pauses)
    until: float = field(default=0.0)


_known = _Known()


def pauses() -> Pauses:
    """Return every pause, read at most once a second per process."""
    if time.monotonic() >= _known.until:
        paused = Source.objects.filter(destination__paused_at__isnull=False)
        _known.pauses = Pauses(
            frozenset(KindPause.objects.values_list("tenant_id", "kind")),
            frozenset(paused.values_list("pk", flat=True)),
            frozenset(Source.objects.exclude(paused_at=None).values_list("pk", flat=True)),
        )
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
            _record(act, "pause kind", "kind", kind)
    _known.until = 0.0
    ready = Job.objects.ready().filter(tenant=act.tenant, kind=kind, held="")
    return _in_batches(ready, Job.Hold.PAUSED)


def unpause(kind: str, act: Act) -> int:
    """End a pause; return how many jobs may start again. Ending none is harmless."""
    with transaction.atomic(using=sql.database().alias):
        ended, _ = KindPause.objects.filter(tenant=act.tenant, kind=kind).delete()
        if ended:
            _record(act, "unpause kind", "kind", kind)
    return _let_go(_free_again().filter(tenant=act.tenant, kind=kind))


def pause_destination(destination: Destination, act: Act) -> int:
    """Send nothing more to a destination; return how many jobs are held by now.

    What is on its way goes on to its end. Pausing twice is harmless: the first one stands.
    """
    rows = Destination.objects.filter(pk=destination.pk, tenant=act.tenant)
    with transaction.atomic(using=sql.database().alias):
        if rows.filter(paused_at=None).update(
            paused_at=timezone.now(), paused_by=act.actor, pause_reason=act.reason
        ):
            _record(act, "pause destination", "destination", destination.slug)
    _known.until = 0.0
    ready = Job.objects.ready().filter(
        tenant=act.tenant, kind=FORWARDED, source__destination=destination, held=""
    )
    return _in_batches(ready, Job.Hold.PAUSED)


def unpause_destination(destination: Destination, act: Act) -> int:
    """End a destination's pause; return how many jobs may start again."""
    rows = Destination.objects.filter(pk=destination.pk, tenant=act.tenant)
    with transaction.atomic(using=sql.database().alias):
        if rows.exclude(paused_at=None).update(paused_at=None, paused_by="", pause_reason=""):
            _record(act, "unpause destination", "destination", destination.slug)
    sent_on = Q(kind=FORWARDED, source__destination=destination)
    return _let_go(_free_again().filter(sent_on, tenant=act.tenant))


def pause_source(source: Source, act: Act) -> int:
    """Take in a source's events as ever but start none; return how many jobs are held by now.

    What runs goes on to its end; within a second every worker holds what it would start. Pausing
    twice is harmless: the first one stands.
    """
    rows = Source.objects.filter(pk=source.pk, tenant=act.tenant)
    with transaction.atomic(using=sql.database().alias):
        if rows.filter(paused_at=None).update(paused_at=timezone.now()):
            _record(act, "pause source", "source", source.slug)
    _known.until = 0.0
    ready = Job.objects.ready().filter(tenant=act.tenant, source=source, held="")
    return _in_batches(ready, Job.Hold.PAUSED)


def resume_source(source: Source, act: Act) -> int:
    """End a source's pause; return how many jobs may start again.

    A door that has not heard of it yet holds for up to 5 s more; the sweep frees what it held.
    """
    rows = Source.objects.filter(pk=source.pk, tenant=act.tenant)
    with transaction.atomic(using=sql.database().alias):
        if rows.exclude(paused_at=None).update(paused_at=None):
            _record(act, "resume source", "source", source.slug)
    return _let_go(_free_again().filter(tenant=act.tenant, source=source))


def _let_go(jobs: QuerySet[Job]) -> int:
    _known.until = 0.0
    freed = _in_batches(jobs, Job.Hold.NONE)
    for queue in ("local", "outside"):
        dispatch.ring(queue)
    return freed


def free_unpaused(limit: int) -> int:
    """Let go up to ``limit`` held jobs that no pause speaks of any more; for the sweep."""
    return _change(_free_again(), Job.Hold.NONE, limit)


def _free_again() -> QuerySet[Job]:
    pauses = KindPause.objects.filter(tenant=OuterRef("tenant"), kind=OuterRef("kind"))
    held = Job.objects.ready().filter(held=Job.Hold.PAUSED, source__paused_at=None)
    paused = Q(kind=FORWARDED, source__destination__paused_at__isnull=False)
    return held.exclude(paused).exclude(Exists(pauses))


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


def _record(act: Act, name: str, about: str, about_id: str) -> None:
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about=about,
        about_id=about_id, reason=act.reason,
    )  # fmt: skip
