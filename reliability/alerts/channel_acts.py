"""Adding and removing a channel: its address is judged before anything is saved."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.alerts import chat
from reliability.errors import AddressRefused, NoAnswer
from reliability.models import AlertChannel, AlertRule
from reliability.models.acting import Refused, alone, name_error, record
from reliability.models.channel import WEBHOOK, Secrets
from reliability.outbound import check
from reliability.outbound.signing import new_secret
from reliability.work.dead_letters import Act
from reliability.work.destination_acts import host_of

HTTP = ("http", "https")
SHOWN_MAX = 300


@dataclass(frozen=True)
class WantedChannel:
    """A channel as asked for; an ``http(s)`` address is a webhook. Without rules: every one."""

    name: str
    address: str
    rules: Sequence[AlertRule] = ()


@dataclass(frozen=True)
class AddedChannel:
    """The new channel and what its webhooks are signed with, shown this once; empty for a chat."""

    channel: AlertChannel
    secret: str


def add_channel(wanted: WantedChannel, act: Act) -> AddedChannel | Refused:
    """Add a channel to rules of the act's tenant; they tell it from now on.

    All addresses of a webhook's host are looked up first, which may take seconds; one that is not
    public refuses it.
    """
    if why := name_error("channel", wanted.name) or _no_address(wanted.address):
        return Refused(why)
    made = AlertChannel(
        tenant=act.tenant, public_id=uuid.uuid4(), name=wanted.name,
        scheme=_scheme(wanted.address), shown=shown(wanted.address),
        created_at=timezone.now(), created_by=act.actor,
    )  # fmt: skip
    secret = new_secret() if made.is_webhook else ""
    made.seal(Secrets(wanted.address, secret))
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        if why := _wrong(wanted, act):
            return Refused(why)
        made.save(force_insert=True)
        rules = wanted.rules or AlertRule.objects.filter(tenant=act.tenant, enabled=True)
        made.rules.set(rules)
        _record(act, "add channel", made)
    return AddedChannel(made, secret)


def remove_channel(channel: AlertChannel, act: Act) -> AlertChannel | Refused:
    """Remove a channel and forget its secrets; what waited for it is given up."""
    with transaction.atomic(using=sql.database().alias):
        removed = AlertChannel.objects.standing().filter(pk=channel.pk, tenant=act.tenant)
        if not removed.update(
            removed_at=timezone.now(), sealed_address=b"", sealed_signing=b""
        ):
            return Refused("It is removed already.")
        _record(act, "remove channel", channel)
    return AlertChannel.objects.get(pk=channel.pk)


def shown(address: str) -> str:
    """Return what may be seen of an address: a webhook's host; of the others hardly more."""
    scheme = _scheme(address)
    if scheme == WEBHOOK:
        return f"{host_of(address)}/…"
    host = host_of(address) if scheme == "workflows" else f"{scheme}://"
    return f"{host[: SHOWN_MAX - 1]}…"


def _scheme(address: str) -> str:
    scheme = address.partition("://")[0].lower()
    return WEBHOOK if scheme in HTTP else scheme


def _no_address(address: str) -> str:
    try:
        if _scheme(address) == WEBHOOK:
            check(address)
        else:
            chat.judge(address)
    except (AddressRefused, NoAnswer) as error:
        return f"This cannot be a channel: {error}."
    return ""


def _wrong(wanted: WantedChannel, act: Act) -> str:
    if any(rule.tenant_id != act.tenant.pk for rule in wanted.rules):
        return "There is no such rule."
    taken = AlertChannel.objects.standing().filter(tenant=act.tenant, name=wanted.name)
    return f"There is a channel {wanted.name!r} already." if taken.exists() else ""


def _record(act: Act, name: str, channel: AlertChannel) -> None:
    """Put on record what may be seen of the channel, and no secret."""
    record(
        act, name, about="channel", about_id=str(channel.public_id), called=channel.name,
        shown=channel.shown, rules=[rule.name for rule in channel.rules.order_by("pk")],
    )  # fmt: skip
