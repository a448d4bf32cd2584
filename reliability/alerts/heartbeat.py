"""The outgoing heartbeat: after each good pass an outside watcher hears of us, or misses us."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from reliability.errors import AddressRefused, NoAnswer
from reliability.models import Run
from reliability.outbound import Request, send

logger = logging.getLogger(__name__)

JOB = "heartbeat"
TIME_MAX = timedelta(seconds=5)
ANSWER_BYTES_MAX = 1_024
GOOD = range(200, 300)


def heartbeat(after: str, trigger: str) -> bool:
    """Ask ``RELIABILITY_HEARTBEAT_URL`` after a good pass, and record how it went as a ``Run``.

    Within five seconds, by the guarded client; no answer and a refused address disturb nobody.
    Return whether it was answered with success; without an address nothing is sent or recorded.
    """
    url = getattr(settings, "RELIABILITY_HEARTBEAT_URL", "")
    if not url:
        return False
    started_at = timezone.now()
    said = _ask(url)
    good = said.isdigit() and int(said) in GOOD
    if not good:
        logger.warning("heartbeat_failed", extra={"after": after, "error": said})
    _record(trigger, started_at, ok=good, after=after, answer=said)
    return good


def _ask(url: str) -> str:
    try:
        answer = send(
            Request(method="GET", url=url, time=TIME_MAX, bytes_max=ANSWER_BYTES_MAX)
        )
    except (AddressRefused, NoAnswer) as error:
        return str(error)
    return str(answer.status)


def _record(trigger: str, started_at: datetime, *, ok: bool, **facts: str) -> None:
    Run.objects.create(
        job=JOB,
        trigger=trigger,
        started_at=started_at,
        ended_at=timezone.now(),
        ok=ok,
        facts=facts,
    )
