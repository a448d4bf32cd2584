"""Tells the people who asked for a job that it failed: one mail a job, at its first failure."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlencode, urlsplit

from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from reliability import sql
from reliability.alerts.deliver import send, wait_after
from reliability.alerts.message import PREFIX, Fact, url
from reliability.alerts.wording import at, one_line
from reliability.conf import conf
from reliability.models import Attempt, Job, Notice

logger = logging.getLogger(__name__)


def tell_askers() -> int:
    """Send the notices that are due, at most ``mails_per_pass_max``; return how many went out.

    A process that dies between sending and marking leaves a notice due again after ``mail_lease``,
    under the same Message-ID. After ``notice_tries_max`` tries it is given up, with its error.
    """
    told = 0
    for _ in range(conf().mails_per_pass_max):
        notice = _claim(timezone.now())
        if notice is None:
            break
        told += _tell(notice)
    return told


def _claim(now: datetime) -> Notice | None:
    """Take the notice that has waited longest; it is ours until its lease ends."""
    due = Notice.objects.filter(
        sent_at=None, due_at__lte=now, tries__lt=conf().notice_tries_max
    ).order_by("due_at")
    with transaction.atomic(using=sql.database().alias):
        notice = due.select_for_update(skip_locked=True, of=("self",)).first()
        if notice is None:
            return None
        notice.tries += 1
        Notice.objects.filter(pk=notice.pk).update(
            tries=notice.tries, due_at=now + conf().mail_lease
        )
    return notice


def _tell(notice: Notice) -> bool:
    mine = Notice.objects.filter(pk=notice.pk, tries=notice.tries, sent_at=None)
    try:
        send(compose(notice))
    except (OSError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"[: conf().error_bytes_max]
        logger.warning("notice_failed", extra={"notice": notice.pk, "error": why})
        mine.update(due_at=timezone.now() + wait_after(notice.tries), error=why)
        return False
    return bool(mine.update(sent_at=timezone.now(), error=""))


def compose(notice: Notice) -> EmailMessage:
    """Return the mail of one notice: what failed, when, what follows; no payload, no key."""
    job = Job.objects.select_related("tenant", "source").get(pk=notice.job_id)
    said = f"{one_line(job.kind)} failed"
    link = url("/trace/?" + urlencode({"find": str(job.public_id)}))
    return EmailMessage(
        subject=f"{PREFIX} {said}",
        body=render_to_string(
            "console/alerts/mail/asked.txt",
            {"said": said, "link": link, "facts": list(_facts(job))},
        ),
        to=[notice.email],
        headers={"Message-ID": _message_id(job), "Auto-Submitted": "auto-generated"},
    )


def _facts(job: Job) -> Iterator[Fact]:
    yield "Tenant", one_line(job.tenant.name)
    ended = (Attempt.Outcome.FAILED, Attempt.Outcome.LOST)
    last = job.attempts.filter(outcome__in=ended).order_by("-pk").first()
    if last:
        yield "Failed", at(last.ended_at, job.source.zone)
        yield "Error", one_line(last.error_type)
    yield "Now", _now(job)


def _now(job: Job) -> str:
    match job.state:
        case Job.State.READY:
            return f"tried again, not before {at(job.run_at, job.source.zone)}"
        case Job.State.DEAD:
            return "a dead letter: a person decides what happens next"
        case _:
            return str(job.get_state_display()).lower()


def _message_id(job: Job) -> str:
    host = urlsplit(url("/")).hostname or "reliability.invalid"
    return f"<{hashlib.sha256(f'{job.public_id}|asked'.encode()).hexdigest()[:40]}@{host}>"
