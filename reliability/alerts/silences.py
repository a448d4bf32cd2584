"""Silences: nobody is woken for a while, for a reason; what opened meanwhile is told afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from reliability import sql
from reliability.models import AlertRule, Silence, Source
from reliability.models.acting import Refused, record
from reliability.models.silence import SILENCE_MAX
from reliability.work.dead_letters import Act


@dataclass(frozen=True, kw_only=True)
class Window:
    """What shall be silent, and when; without source, kind and rule the whole tenant is."""

    from_at: datetime
    until_at: datetime
    source: Source | None = None
    kind: str = ""
    rule: AlertRule | None = None


def silence(window: Window, act: Act) -> Silence | Refused:
    """Plan a silence; ``act.reason`` is required, the window at most thirty days long.

    Alerts go on opening and resolving. Nothing of them is delivered before it ends.
    """
    if why := _wrong(window, act):
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        planned = Silence.objects.create(
            tenant=act.tenant, source=window.source, kind=window.kind, rule=window.rule,
            from_at=window.from_at, until_at=window.until_at, reason=act.reason,
            created_by=act.actor, created_at=timezone.now(),
        )  # fmt: skip
        _record(planned, act, "silence alerts")
    return planned


def _wrong(window: Window, act: Act) -> str:
    foreign = [
        row for row in (window.source, window.rule) if row and row.tenant_id != act.tenant.pk
    ]
    faults = {
        "There is no such source or rule.": bool(foreign),
        "A silence needs a reason.": not act.reason.strip(),
        "A silence ends after it begins.": window.until_at <= window.from_at,
        "A silence lasts thirty days at most.": (
            window.until_at - window.from_at > SILENCE_MAX
        ),
        "A silence that is over already silences nothing.": (
            window.until_at <= timezone.now()
        ),
    }
    return next((why for why, holds in faults.items() if holds), "")


def end_silence(planned: Silence, act: Act) -> Silence | Refused:
    """End a silence before its time; what it kept back is told by the next look that finds it."""
    now = timezone.now()
    with transaction.atomic(using=sql.database().alias):
        fresh = Silence.objects.filter(
            pk=planned.pk, tenant=act.tenant, ended_at=None, until_at__gt=now
        )
        if not fresh.update(ended_at=now, ended_by=act.actor):
            return Refused("It is over already.")
        _record(planned, act, "end silence")
    return Silence.objects.get(pk=planned.pk)


def silent(now: datetime) -> Exists:
    """Return the condition under which a delivery's alert is silenced as a whole."""
    found = Silence.objects.active(now).filter(
        Q(source=None) | Q(source=OuterRef("alert__source")),
        Q(rule=None) | Q(rule=OuterRef("alert__rule")),
        Q(kind="") | Q(kind=OuterRef("alert__rule__kind")),
        tenant=OuterRef("alert__tenant"),
    )
    return Exists(found)


def in_words(planned: Silence) -> str:
    """Say what a silence covers."""
    parts = [
        f"rule {planned.rule.name}" if planned.rule else "",
        planned.source.slug if planned.source else "",
        f"letters of {planned.kind}" if planned.kind else "",
    ]
    return ", ".join(part for part in parts if part) or "every alert of the tenant"


def _record(planned: Silence, act: Act, name: str) -> None:
    record(
        act, name, about="silence", about_id=str(planned.public_id), covers=in_words(planned),
        from_at=planned.from_at.isoformat(), until_at=planned.until_at.isoformat(),
    )  # fmt: skip
