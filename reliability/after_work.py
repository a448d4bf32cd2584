"""Answers a delivery once it is worked: for callers that resend by themselves."""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from reliability import sql
from reliability.claim import webhook
from reliability.claim.accept import Asked, Delivered, Fate, claim
from reliability.errors import NotWorked
from reliability.handlers import find
from reliability.models import Job, Receipt, Source
from reliability.work.attempt import attempt
from reliability.work.batch import CHECK_NOW, prepare
from reliability.work.lease import Leased, take_inline
from reliability.work.settle import Failed, finish

logger = logging.getLogger(__name__)


def take_in_and_work(
    source: Source, asked: Sequence[Asked], delivered: Delivered
) -> list[Fate]:
    """Claim events and work them in one transaction: all are done, or nothing of them is left.

    Raises ``NotWorked`` after rolling back, claims included: the caller's own schedule tries
    again, ours never starts. Kinds with outside effects are claimed and left to the workers:
    forgetting their key after a failure could let an effect happen twice. So are letters.
    """
    with transaction.atomic(using=sql.database().alias, durable=True):
        fates = claim(source, asked, delivered=delivered)
        # claim() answers once for each key, in this order.
        kinds = {event.key: event.kind for event in asked}.values()
        for fate, kind in zip(fates, kinds, strict=True):
            if _is_ours(fate, kind):
                _work(fate)
    return fates


def _is_ours(fate: Fate, kind: str) -> bool:
    declared = find(kind)
    fresh = fate.verdict == Receipt.Verdict.ACCEPTED and fate.state == Job.State.READY
    return fresh and (declared is None or declared.queue == "local")


def _work(fate: Fate) -> None:
    leased = _lease(fate.job_id) if fate.job_id else None
    ready = prepare([leased]) if leased else []
    if not ready:
        raise NotWorked("its source is paused, or no handler here knows its kind")
    [waiting] = ready
    verdict = attempt(waiting.job, waiting.kind, waiting.event, own_job=False)
    if isinstance(verdict, Failed):
        logger.warning(
            "not_worked",
            extra={"kind": waiting.kind.name, "error": type(verdict.error).__name__},
        )
        raise NotWorked("its handler failed") from verdict.error
    sql.command(CHECK_NOW)
    finish([verdict])


def _lease(job_id: UUID) -> Leased | None:
    if Job.objects.filter(public_id=job_id).exclude(held=Job.Hold.NONE).exists():
        return None
    return take_inline(job_id)


webhook.work_first = take_in_and_work
