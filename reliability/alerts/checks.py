"""Found at start: an alert that nobody would hear of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning  # noqa: A004 - Django's own name
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef

from reliability.models import AlertChannel, AlertRule, Tenant

STAYS_HERE = {
    f"django.core.mail.backends.{name}.EmailBackend"
    for name in ("console", "dummy", "filebased", "locmem")
}
NAMED_MAX = 5


def mail_leaves_the_machine(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn outside DEBUG when alert mails would only be printed, kept or dropped here.

    Where the database may be asked (``--database default``), a channel besides mail is enough.
    """
    if settings.DEBUG or settings.EMAIL_BACKEND not in STAYS_HERE:
        return []
    if databases and _a_channel_stands():
        return []
    return [
        Warning(
            f"Alerts go to {settings.EMAIL_BACKEND}, which sends nothing to anybody.",
            hint="Set EMAIL_URL=smtp://user:password@host:587?tls=1, or add a channel.",
            id="reliability.W020",
        )
    ]


def links_have_a_host(**_: Any) -> list[CheckMessage]:
    """Warn outside DEBUG when the link in an alert mail would name no host."""
    address: str = getattr(settings, "RELIABILITY_BASE_URL", "")
    if settings.DEBUG or address:
        return []
    return [
        Warning(
            "RELIABILITY_BASE_URL is empty: the links in alert mails lead nowhere.",
            hint="Set it to the console's address, such as https://reliability.example.com.",
            id="reliability.W021",
        )
    ]


def a_dead_beat_is_noticed(**_: Any) -> list[CheckMessage]:
    """Warn outside DEBUG when nothing outside this machine would miss a dead beat."""
    address: str = getattr(settings, "RELIABILITY_HEARTBEAT_URL", "")
    if settings.DEBUG or address or settings.EMAIL_BACKEND not in STAYS_HERE:
        return []
    return [
        Warning(
            "Neither a heartbeat nor a mail leaves this machine: nobody would miss it.",
            hint="Set RELIABILITY_HEARTBEAT_URL to a dead man's switch, or EMAIL_URL.",
            id="reliability.W022",
        )
    ]


def every_tenant_can_be_woken(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn outside DEBUG of tenants none of whose rules has an address or a channel.

    Reads the database, so register it under ``Tags.database``; before the first migration, or
    without a database, it has nothing to say.
    """
    if settings.DEBUG or not databases:
        return []
    return [
        Warning(
            f"No enabled alert rule of tenant {slug!r} has a mail address or a channel.",
            hint="Add one to its rules: nobody would hear of its dead letters.",
            id="reliability.W020",
        )
        for slug in _without_anybody()
    ]


def _a_channel_stands() -> bool:
    try:
        with transaction.atomic():
            return AlertChannel.objects.standing().filter(rules__enabled=True).exists()
    except DatabaseError:
        return False


def _without_anybody() -> list[str]:
    rules = AlertRule.objects.filter(tenant=OuterRef("pk"), enabled=True)
    mailed = rules.exclude(emails=[])
    told = rules.filter(channels__in=AlertChannel.objects.standing())
    try:
        with transaction.atomic():
            tenants = Tenant.objects.exclude(Exists(mailed) | Exists(told)).order_by("slug")
            return list(tenants.values_list("slug", flat=True)[:NAMED_MAX])
    except DatabaseError:
        return []
