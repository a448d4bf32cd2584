"""Tells the starter how a redrive ended, or that it stopped itself: one mail for each."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db.models import F, Q, QuerySet
from django.template.loader import render_to_string

from reliability.conf import conf
from reliability.models import Redrive, RedriveMember
from reliability.work.redrive.standing import counts

logger = logging.getLogger(__name__)

TOLD = (Redrive.State.DONE, Redrive.State.CANCELLED, Redrive.State.STOPPED)
HEADS = {
    Redrive.State.DONE: "is done",
    Redrive.State.CANCELLED: "was cancelled",
    Redrive.State.STOPPED: "stopped itself",
}
TRY_AGAIN = timedelta(minutes=1)


def tell(now: datetime) -> int:
    """Send the mails that redrives owe their starters; return how many went out.

    Several callers never send one twice; a process that dies between sending and marking leaves
    the mail due again after ``conf().mail_lease``, under the same Message-ID. Given up after
    ``conf().mail_tries_max`` tries.
    """
    return sum(_tell(redrive, now) for redrive in _owed(now)[: conf().mails_per_pass_max])


def _owed(now: datetime) -> "QuerySet[Redrive]":
    over = Q(ended_at__isnull=False) | Q(state=Redrive.State.STOPPED)
    due = Q(mail_due_at=None) | Q(mail_due_at__lte=now)
    ended = Redrive.objects.filter(over, due, state__in=TOLD).exclude(mail_to="")
    return ended.exclude(told_state=F("state")).select_related("tenant").order_by("pk")


def _tell(redrive: Redrive, now: datetime) -> bool:
    mine = Redrive.objects.filter(
        pk=redrive.pk, told_state=redrive.told_state, mail_tries=redrive.mail_tries
    )
    if not mine.update(mail_tries=F("mail_tries") + 1, mail_due_at=now + conf().mail_lease):
        return False
    sent = _send(redrive)
    if sent or redrive.mail_tries + 1 >= conf().mail_tries_max:
        told = {"told_state": redrive.state, "mail_tries": 0, "mail_due_at": None}
        Redrive.objects.filter(pk=redrive.pk).update(**told)
    else:
        wait = TRY_AGAIN * 2**redrive.mail_tries
        Redrive.objects.filter(pk=redrive.pk).update(mail_due_at=now + wait)
    return sent


def _send(redrive: Redrive) -> bool:
    try:
        compose(redrive).send()
    except (
        OSError,
        ValueError,
    ) as err:  # SMTPException is an OSError, a bad header a ValueError
        logger.warning(
            "redrive_mail_failed", extra={"redrive": redrive.pk, "error": type(err).__name__}
        )
        return False
    return True


def compose(redrive: Redrive) -> EmailMessage:
    """Write the mail: a link first, then counts; never a payload or a key."""
    many, outcome = counts(redrive), RedriveMember.Outcome
    said = f"{redrive} {HEADS[Redrive.State(redrive.state)]}"
    base = settings.RELIABILITY_BASE_URL
    context = {
        "said": said,
        "link": f"{base}/redrives/{redrive.public_id}/" if base else "",
        "redrive": redrive,
        "many": {name.value.replace(" ", "_"): many.get(name, 0) for name in outcome},
    }
    limit = conf().mail_timeout.total_seconds()
    seen = redrive.judged_succeeded + redrive.judged_failed  # apart from an earlier stop
    return EmailMessage(
        subject=f"[Reliability] {said}: {many.get(outcome.SUCCEEDED, 0)} succeeded, "
        f"{many.get(outcome.FAILED, 0)} failed again",
        body=render_to_string("console/redrives/mail.txt", context),
        to=[redrive.mail_to],
        headers={
            "Message-ID": f"<{redrive.public_id}-{redrive.state}-{seen}@reliability.invalid>",
            "Auto-Submitted": "auto-generated",  # RFC 3834: no absence notes in return
        },
        connection=get_connection(timeout=settings.EMAIL_TIMEOUT or limit),
    )
