"""What `manage.py alerts channel` does: list, add and remove the channels of a tenant."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError

from reliability.alerts.channel_acts import WantedChannel, add_channel, remove_channel
from reliability.alerts.channels import Channel, channels
from reliability.management.asking import done, one_of
from reliability.models import AlertChannel, AlertRule, Tenant
from reliability.work.dead_letters import Act

FROM_INPUT = "-"


def listed(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the tenant's mail addresses and channels, no secret among them."""
    return [_row(one) for one in channels(tenant)]


def _row(one: Channel) -> dict[str, Any]:
    last = one.last[0] if one.last else None
    return {
        "channel": one.called,
        "to": one.made.shown if one.made else "mail",
        "rules": one.rules,
        "last": f"{last.occasion}: {last.status}" if last else "",
        "error": last.error if last else "",
    }


def add(options: dict[str, Any], act: Act, rules: list[AlertRule]) -> dict[str, Any]:
    """Add one; return its facts, the signing secret among them, which is printed this once."""
    address = options["address"] or ""
    if address == FROM_INPUT:
        address = sys.stdin.readline().strip()
    added = done(add_channel(WantedChannel(options["name"], address, rules), act))
    facts = {"channel": added.channel.name, "to": added.channel.shown}
    return facts | {"secret": added.secret} if added.secret else facts


def remove(options: dict[str, Any], act: Act) -> dict[str, Any]:
    """Remove the one of that name; return its facts."""
    removed = done(remove_channel(called(options["name"], act.tenant), act))
    return {"removed": removed.name, "to": removed.shown}


def called(name: str, tenant: Tenant) -> AlertChannel:
    """Return the tenant's channel; else end with one line that names the known ones."""
    known = AlertChannel.objects.standing().filter(tenant=tenant).order_by("name")
    one_of("channel", name, (one.name for one in known[:50]))
    return known.get(name=name)


def verb_of(options: dict[str, Any]) -> str:
    """Return ``add`` or ``remove``; else end with one line that says how to ask."""
    if options["verb"] not in {"add", "remove"}:
        raise CommandError("Say alerts channel add or alerts channel remove, with --name.")
    return str(options["verb"])
