"""What a person paused in this tenant: kinds, sources and destinations."""

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.http import urlencode

from reliability.console.access import OperatorRequest, for_tenant
from reliability.models import Destination, KindPause, Source

PAUSES_MAX = 50


@dataclass(frozen=True, kw_only=True)
class Paused:
    """One pause, with the page on which it can be ended."""

    what: str
    name: str
    href: str
    since: datetime
    by: str = ""
    reason: str = ""
    """Empty for a source, whose audit trail tells who and why."""


def paused_now(request: OperatorRequest) -> list[Paused]:
    """Return the tenant's pauses, oldest first."""
    kinds = for_tenant(request, KindPause.objects.order_by("paused_at"))[:PAUSES_MAX]
    paused = Destination.objects.filter(paused_at__isnull=False).order_by("paused_at")
    destinations = for_tenant(request, paused)[:PAUSES_MAX]
    stopped = Source.objects.filter(paused_at__isnull=False).order_by("paused_at")
    sources = for_tenant(request, stopped)[:PAUSES_MAX]
    found = [
        Paused(what="kind", name=one.kind, since=one.paused_at, by=one.paused_by,
               reason=one.reason,
               href=f"{reverse('console:kind')}?{urlencode({'kind': one.kind})}")
        for one in kinds
    ] + [
        Paused(what="destination", name=one.slug, since=one.paused_at, by=one.paused_by,
               reason=one.pause_reason,
               href=reverse("console:destination", args=[one.public_id]))
        for one in destinations
        if one.paused_at
    ] + [
        Paused(what="source", name=one.slug, since=one.paused_at,
               href=reverse("console:source", args=[one.public_id]))
        for one in sources
        if one.paused_at
    ]  # fmt: skip
    return sorted(found, key=lambda one: one.since)
