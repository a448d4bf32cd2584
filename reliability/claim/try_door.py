"""A test event: really signed, sent over HTTP to our own door, worked by a handler that does nothing."""

from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.errors import AddressRefused, NoAnswer
from reliability.handlers import Event, LocalTransaction, handler
from reliability.models import AuditEntry, Source, SourceSecret
from reliability.models.acting import Acting, Refused, alone, record
from reliability.outbound import Guard, Request, guard, send
from reliability.outbound.addresses import networks
from reliability.outbound.senders import TEST_TYPE, CannotSign, Delivery, sample_delivery

OWN_MACHINE = networks(("127.0.0.0/8", "::1/128"))
SAID_BYTES_MAX = 500
ACT = "send test event"


@dataclass(frozen=True)
class Tried:
    """What the door answered; ``key`` leads to the event's trace."""

    key: str
    status: int
    said: str


@handler(TEST_TYPE, sink=LocalTransaction())
def come_through(_event: Event) -> None:
    """Do nothing: that it was called is all a test event shows."""


def try_door(source: Source, act: Acting, *, event_id: str) -> Tried | Refused:
    """Send one test event to a source's own address, signed with its current secret.

    The address is built on ``RELIABILITY_BASE_URL``, never on what a request says. The act is on
    record before anything is sent; the same ``event_id`` again is a duplicate at the door and no
    second act. Waits for the answer up to ``conf().outbound_time``.
    """
    delivery = _delivery(source, event_id)
    if isinstance(delivery, Refused):
        return delivery
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        entries = AuditEntry.objects.filter(tenant=act.tenant, about="source", act=ACT)
        if not entries.filter(about_id=source.slug, facts__key=delivery.key).exists():
            record(act, ACT, about="source", about_id=source.slug, key=delivery.key)
    return _send(source, delivery)


def _delivery(source: Source, event_id: str) -> Delivery | Refused:
    if not settings.RELIABILITY_BASE_URL:
        return Refused("Our own address is not known: set RELIABILITY_BASE_URL.")
    now = timezone.now()
    current = SourceSecret.objects.valid(now).filter(source=source).first()
    if current is None:
        return Refused(f"{source.slug} has no secret: rotate it first.")
    try:
        return sample_delivery(
            source.scheme, event_id, secret=current.open(), options=source.options, now=now
        )
    except CannotSign as error:
        return Refused(f"Nothing was sent: {error}.")


def _send(source: Source, delivery: Delivery) -> Tried | Refused:
    url = f"{settings.RELIABILITY_BASE_URL}/hooks/{source.endpoint_token}/"
    asked = Request(
        method="POST", url=url, headers=delivery.headers, body=delivery.body,
        bytes_max=SAID_BYTES_MAX,
    )  # fmt: skip
    try:
        answer = send(asked, _own())
    except AddressRefused as error:
        return Refused(f"Nothing was sent: {error}. See outbound_private_networks.")
    except NoAnswer as error:
        return Refused(f"No answer came: {error}.")
    return Tried(delivery.key, answer.status, answer.body.decode("utf-8", "replace"))


def _own() -> Guard:
    """Allow this machine besides what is allowed: the base URL is the deployer's own setting."""
    usual = guard()
    return replace(usual, allowed=(*usual.allowed, *OWN_MACHINE))
