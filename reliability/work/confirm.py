"""Events whose signature does not bind their body wait here until their provider was asked."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import transaction
from django.utils import timezone

from reliability import dispatch, sql
from reliability.models import Body, Job, ProcessedKey, Source
from reliability.outbound import paypal
from reliability.outbound.paypal import Confirmed, Denied, NotNow, Word
from reliability.work.lease import JobId

logger = logging.getLogger(__name__)

BATCH_MAX = 20
WAIT_MIN, WAIT_MAX = timedelta(seconds=5), timedelta(minutes=15)
ASKED_FOR = timedelta(hours=24)
"""How long an event's provider may fail to answer before a person is asked instead."""

PROVIDERS: Mapping[str, Callable[[Source, bytes], Word]] = MappingProxyType(
    {"paypal": paypal.confirm}
)
"""Scheme to how its provider is asked."""


def confirm_due(goes_on: Callable[[], bool]) -> int:
    """Ask about the events that are due, one by one, and return how many were asked about.

    Stops at the first provider that does not answer: the others wait for the next pass. Two
    passes at once never ask about the same event.
    """
    asked = 0
    for job in _due(timezone.now()):
        if not goes_on() or not _reserve(job, timezone.now()):
            continue
        word = _ask(job)
        _apply(job, word)
        asked += 1
        if isinstance(word, NotNow):
            break
    return asked


def _due(now: datetime) -> list[Job]:
    found = Job.objects.to_confirm(now).filter(source__paused_at=None)
    return list(found.select_related("source").order_by("run_at")[:BATCH_MAX])


def _reserve(job: Job, now: datetime) -> bool:
    """Move its next asking on, so that nobody else asks now; the waits grow with its age."""
    wait = min(max(now - job.created_at, WAIT_MIN), WAIT_MAX)
    mine = Job.objects.to_confirm(now).filter(pk=job.pk, run_at=job.run_at)
    return bool(mine.update(run_at=now + wait))


def _ask(job: Job) -> Word:
    ask = PROVIDERS.get(job.source.scheme)
    body = Body.objects.filter(key=job.key_id, first=True).first()
    if ask is None or body is None:
        return Denied("there is nobody to ask about it")
    return ask(job.source, bytes(body.raw))


def _apply(job: Job, word: Word) -> None:
    match word:
        case Confirmed():
            _free(job)
        case Denied(why):
            _suspect(job, why)
        case NotNow(why) if timezone.now() - job.created_at > ASKED_FOR:
            _suspect(job, f"its provider could not be asked: {why}")
        case NotNow(why):
            logger.warning("event_not_confirmed", extra={"job": job.pk, "why": why})


def _free(job: Job) -> None:
    """Let its handler run. The mark on its key stays off for good: a requeue asks no more."""
    alias = sql.database().alias
    with transaction.atomic(using=alias):
        ProcessedKey.objects.filter(pk=job.key_id).update(unconfirmed=False)
        mine = Job.objects.filter(pk=job.pk, state=Job.State.READY, held=Job.Hold.UNCONFIRMED)
        if mine.update(held=Job.Hold.NONE, run_at=timezone.now()):
            dispatch.ring_on_commit(job.queue, using=alias)


def _suspect(job: Job, why: str) -> None:
    sql.rows("bury_unconfirmed", JobId, id=job.pk, reason=why)
    logger.warning("event_suspect", extra={"job": job.pk, "why": why})
