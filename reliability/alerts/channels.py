"""Where alerts go: addresses and channels of a tenant, what each got lately, and a test on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from reliability import sql
from reliability.alerts.addresses import addresses
from reliability.alerts.deliver import used_of_this_hour
from reliability.conf import conf
from reliability.models import AlertChannel, AlertDelivery, AlertRule, Tenant
from reliability.models.acting import Refused, alone, record
from reliability.models.channel import public_id_in
from reliability.work.dead_letters import Act

LAST = 5
TEST = "test"


@dataclass(frozen=True)
class Channel:
    """One address, the rules that tell it, and its last deliveries, the newest first."""

    email: str
    """A mail address, or a channel's key."""
    rules: list[str] = field(default_factory=list)
    last: list[AlertDelivery] = field(default_factory=list)
    made: AlertChannel | None = None
    """``None``: a mail address."""

    @property
    def called(self) -> str:
        return self.made.name if self.made else self.email


def channels(tenant: Tenant) -> list[Channel]:
    """Return each address and channel with the last ``LAST`` deliveries to it."""
    rules = list(AlertRule.objects.filter(tenant=tenant, enabled=True).order_by("pk"))
    sent = AlertDelivery.objects.filter(tenant=tenant).select_related("alert__rule")
    by_mail = [
        Channel(
            email,
            [rule.name for rule in rules if email in rule.emails],
            list(sent.filter(email=email).order_by("-pk")[:LAST]),
        )
        for email in addresses(tenant)
    ]
    standing = AlertChannel.objects.standing().filter(tenant=tenant)
    others = [
        Channel(
            made.key,
            [rule.name for rule in made.rules.all() if rule.enabled],
            list(sent.filter(channel=made).order_by("-pk")[:LAST]),
            made,
        )
        for made in standing.prefetch_related("rules").order_by("pk")
    ]
    return by_mail + others


def ask_test(email: str, act: Act) -> AlertDelivery | Refused:
    """Put a test into the outbox of an address or channel of the tenant; ``deliver`` sends it.

    ``email`` is a mail address or a channel's key. Refused for any other address, while a test to it waits, and once the hour's limit is met.
    """
    now = timezone.now()
    with transaction.atomic(using=sql.database().alias):
        tests = AlertDelivery.objects.filter(
            tenant=act.tenant, alert=None, email=email, occasion__startswith=TEST
        )
        alone(act)  # the second of two askers finds the first one's test waiting
        if why := _refused(email, act.tenant, now=now, tests=tests):
            return Refused(why)
        made = _made(email, act.tenant)
        record(
            act, "send test", about="channel",
            about_id=str(made.public_id) if made else email, called=str(made or email),
        )  # fmt: skip
        return AlertDelivery.objects.create(
            tenant=act.tenant, occasion=f"{TEST} {tests.count() + 1}", email=email, value=0,
            channel=made, counted_at=now, due_at=now,
        )  # fmt: skip


def _made(email: str, tenant: Tenant) -> AlertChannel | None:
    public_id = public_id_in(email)
    if public_id is None:
        return None
    return AlertChannel.objects.standing().filter(tenant=tenant, public_id=public_id).first()


def _refused(
    email: str, tenant: Tenant, *, now: datetime, tests: QuerySet[AlertDelivery]
) -> str:
    if email not in addresses(tenant) and not _made(email, tenant):
        return "No enabled rule of this tenant tells that address."
    if tests.filter(status=AlertDelivery.Status.PENDING).exists():
        return "A test to it is on its way already."
    if used_of_this_hour(email, now) >= conf().mails_per_hour_max:
        return (
            f"It had {conf().mails_per_hour_max} messages within the hour: that is the limit."
        )
    return ""
