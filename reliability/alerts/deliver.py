"""Sends the messages that alerts owe, one by one: at least once over a crash, else exactly once."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from reliability.alerts import chat, morning, webhook
from reliability.alerts.message import compose, message_id
from reliability.alerts.silences import silent
from reliability.conf import conf
from reliability.errors import AddressRefused, NoAnswer
from reliability.models import AlertDelivery
from reliability.models.sealing import CannotUnseal

logger = logging.getLogger(__name__)

CLAIM_LOCK = 0x4D41494C
"""Advisory lock under which one mail is claimed: only so does the hour's limit hold for two."""
FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(hours=1)
HOUR = timedelta(hours=1)
# SMTPException is an OSError, a bad header a ValueError.
NOT_SENT = (OSError, ValueError, AddressRefused, NoAnswer, CannotUnseal)

Outcome = Literal["sent", "put_off", "given_up"]
Status = AlertDelivery.Status


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """How many mails one call sent, put off for a later try, and gave up."""

    sent: int = 0
    put_off: int = 0
    given_up: int = 0


@dataclass(frozen=True)
class Claimed:
    """A mail that is ours until its lease ends; ``tries`` is the mark it must still carry."""

    owed: AlertDelivery
    tries: int
    waiting: int


def deliver() -> Delivered:
    """Send what is due, at most ``mails_per_pass_max``: by Django's mail backend, or its channel.

    Several callers at once never send one mail twice. A process that dies between sending and
    marking leaves the mail due again after ``mail_lease``; it then goes out a second time under
    the same Message-ID. The mails of one alert to one address keep their order.
    """
    outcomes: Counter[Outcome] = Counter()
    for _ in range(conf().mails_per_pass_max):
        claimed = _claim(timezone.now())
        if claimed is None:
            break
        outcomes[_settle(claimed)] += 1
    return Delivered(
        sent=outcomes["sent"],
        put_off=outcomes["put_off"],
        given_up=outcomes["given_up"],
    )


def send_test(email: str) -> None:
    """Send one mail that proves the way to an address works. Raises what the backend raises."""
    send(_test(email, {}))


def _test(email: str, headers: dict[str, str]) -> EmailMessage:
    text = "A test: alerts of this deployment reach this address.\n"
    subject = "[Reliability] Test of the alert mails"
    return EmailMessage(subject=subject, body=text, to=[email], headers=headers)


@transaction.atomic
def _claim(now: datetime) -> Claimed | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
    owed = (
        _due(now)
        .select_related("channel", "tenant", "alert__rule", "alert__source", "alert__tenant")
        .first()
    )
    if owed is None:
        return None
    AlertDelivery.objects.filter(pk=owed.pk, status=Status.PENDING, tries=owed.tries).update(
        tries=F("tries") + 1, due_at=now + conf().mail_lease
    )
    return Claimed(owed, owed.tries + 1, _waiting(owed.email, now))


def _due(now: datetime) -> QuerySet[AlertDelivery]:
    """Mails whose time has come, first of their alert and address, not silenced, within the limit.

    One that was tried before has its place in the hour already.
    """
    pending = AlertDelivery.objects.filter(status=Status.PENDING)
    before = pending.filter(
        alert=OuterRef("alert"), email=OuterRef("email"), pk__lt=OuterRef("pk")
    )
    full = (
        _of_this_hour(now)
        .values("email")
        .annotate(mails=Count("pk"))
        .filter(mails__gte=conf().mails_per_hour_max)
    )
    has_room = Q(tries__gt=0) | ~Q(email__in=full.values("email"))
    due = pending.filter(has_room, ~Exists(before), ~silent(now), due_at__lte=now)
    return due.order_by("due_at", "pk")


def _of_this_hour(now: datetime) -> QuerySet[AlertDelivery]:
    """Mails that use up the hour's limit: sent within it, or tried and still on their way."""
    sent = Q(status=Status.SENT, sent_at__gt=now - HOUR)
    return AlertDelivery.objects.filter(sent | Q(status=Status.PENDING, tries__gt=0))


def used_of_this_hour(email: str, now: datetime) -> int:
    """Return how many mails of the hour's limit an address has used up."""
    return _of_this_hour(now).filter(email=email).count()


def _waiting(email: str, now: datetime) -> int:
    """Count the mails to an address that the hour has no room for."""
    room = conf().mails_per_hour_max - used_of_this_hour(email, now)
    untried = AlertDelivery.objects.filter(status=Status.PENDING, tries=0, email=email)
    waiting = untried.filter(due_at__lte=now).count()
    return max(0, waiting - max(0, room))


def _settle(claimed: Claimed) -> Outcome:
    """Send one claimed mail and mark how it went."""
    if claimed.tries > conf().mail_tries_max:
        return _give_up(claimed, claimed.owed.error or "Every sender died while sending it.")
    if morning.is_past(claimed.owed, timezone.now()):
        return _give_up(
            claimed, claimed.owed.error or "Its day was over before it could be sent."
        )
    if claimed.owed.channel and claimed.owed.channel.removed_at:
        return _give_up(claimed, "Its channel was removed before it could be sent.")
    try:
        _send(claimed)
    except NOT_SENT as err:
        return _failed(claimed, f"{type(err).__name__}: {err}"[: conf().error_bytes_max])
    _mark(claimed, status=Status.SENT, sent_at=timezone.now(), error="")
    return "sent"


def _send(claimed: Claimed) -> None:
    """Send by mail or by the channel. Raises one of ``NOT_SENT``."""
    match claimed.owed.channel:
        case None:
            send(_composed(claimed))
        case channel if channel.is_webhook:
            webhook.post(claimed.owed, channel.open())
        case channel:
            chat.notify(claimed.owed, channel.open().address)


def _composed(claimed: Claimed) -> EmailMessage:
    if claimed.owed.alert is not None:
        return compose(claimed.owed, waiting=claimed.waiting)
    if claimed.owed.occasion.startswith(morning.MORNING):
        return morning.compose(claimed.owed)
    return _test(claimed.owed.email, {"Message-ID": message_id(claimed.owed)})


def send(mail: EmailMessage) -> None:
    """Send one mail through Django's backend, within ``mail_timeout``. Raises what that raises."""
    limit = conf().mail_timeout.total_seconds()
    mail.connection = get_connection(timeout=settings.EMAIL_TIMEOUT or limit)
    mail.send()


def _failed(claimed: Claimed, error: str) -> Outcome:
    logger.warning("alert_mail_failed", extra={"mail_id": claimed.owed.pk, "error": error})
    if claimed.tries >= conf().mail_tries_max:
        return _give_up(claimed, error)
    _mark(claimed, due_at=timezone.now() + wait_after(claimed.tries), error=error)
    return "put_off"


def wait_after(tries: int) -> timedelta:
    """Return how long to wait after so many tries: doubled each time, up to an hour."""
    return FIRST_WAIT * min(LONGEST_WAIT // FIRST_WAIT, 1 << (tries - 1))


def _give_up(claimed: Claimed, error: str) -> Outcome:
    logger.error("alert_mail_given_up", extra={"mail_id": claimed.owed.pk, "error": error})
    _mark(claimed, status=Status.FAILED, error=error)
    return "given_up"


def _mark(claimed: Claimed, **columns: object) -> None:
    """Write how it went, unless the lease ended and another sender holds the mail now."""
    AlertDelivery.objects.filter(
        pk=claimed.owed.pk, status=Status.PENDING, tries=claimed.tries
    ).update(**columns)
