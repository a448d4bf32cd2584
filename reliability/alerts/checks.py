"""Found at start: an alert that nobody would hear of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning  # noqa: A004 - Django's own name
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef

from reliability.models import AlertRule, Tenant

STAYS_HERE = {
    f"django.core.mail.backends.{name}.EmailBackend"
    for name in ("console", "dummy", "filebased", "locmem")
}
NAMED_MAX = 5


def mail_leaves_the_machine(**_: Any) -> list[CheckMessage]:
    """Warn outside DEBUG when alert mails would only be printed, kept or dropped here."""
    if settings.DEBUG or settings.EMAIL_BACKEND not in STAYS_HERE:
        return []
    return [
        Warning(
            f"Alerts go to {settings.EMAIL_BACKEND}, which sends nothing to anybody.",
            hint="Set EMAIL_URL=smtp://user:password@host:587?tls=1.",
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
    """Warn outside DEBUG of tenants none of whose rules has an address.

    Reads the database, so register it under ``Tags.database``; before the first migration, or
    without a database, it has nothing to say.
    """
    if settings.DEBUG or not databases:
        return []
    return [
        Warning(
            f"No enabled alert rule of tenant {slug!r} has a mail address.",
            hint="Add addresses to its rules: nobody would hear of its dead letters.",
            id="reliability.W020",
        )
        for slug in _without_address()
    ]


def _without_address() -> list[str]:
    woken = AlertRule.objects.filter(tenant=OuterRef("pk"), enabled=True).exclude(emails=[])
    try:
        with transaction.atomic():
            tenants = Tenant.objects.exclude(Exists(woken)).order_by("slug")
            return list(tenants.values_list("slug", flat=True)[:NAMED_MAX])
    except DatabaseError:
        return []
