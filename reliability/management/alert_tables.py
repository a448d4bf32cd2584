"""What `manage.py alerts` lists: rules, living alerts and silences, as rows."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from rich.table import Table

from reliability.alerts.silences import in_words
from reliability.alerts.wording import level, one_line
from reliability.management.printing import cell
from reliability.models import Alert, AlertRule, Silence

LISTED_MAX = 200


def rules(tenant: str | None) -> list[dict[str, Any]]:
    """Return the alert rules of one tenant, or of all."""
    found = AlertRule.objects.select_related("tenant", "source").order_by("tenant_id", "pk")
    return [
        {
            "tenant": rule.tenant.slug,
            "rule": one_line(rule.name),
            "source": rule.source.slug if rule.source else "each",
            "opens": level(rule.measure, rule.high),
            "closes": level(rule.measure, rule.low),
            "hold_seconds": rule.hold_seconds,
            "emails": rule.emails,
            "enabled": rule.enabled,
            "id": str(rule.public_id),
        }
        for rule in (found.filter(tenant__slug=tenant) if tenant else found)
    ]


def living(tenant: str | None) -> list[dict[str, Any]]:
    """Return the alerts that hold or are open, and why nobody is told of some."""
    alerts = Alert.objects.filter(status__in=[Alert.Status.PENDING, Alert.Status.OPEN])
    alerts = alerts.select_related("tenant", "rule", "source").order_by("tenant_id", "since")
    return [
        {
            "alert": str(alert.public_id),
            "tenant": alert.tenant.slug,
            "rule": one_line(alert.rule.name),
            "source": alert.source.slug if alert.source else "",
            "status": alert.status,
            "withheld": alert.withheld,
            "value": level(alert.rule.measure, alert.value),
            "since": alert.since.isoformat(timespec="seconds"),
        }
        for alert in (alerts.filter(tenant__slug=tenant) if tenant else alerts)
    ]


def silences(tenant: str | None) -> list[dict[str, Any]]:
    """Return the silences of one tenant, or of all, those that end last first."""
    found = Silence.objects.select_related("tenant", "source", "rule").order_by("-until_at")
    chosen = found.filter(tenant__slug=tenant) if tenant else found
    return [silence_row(one) for one in chosen[:LISTED_MAX]]


def silence_row(one: Silence) -> dict[str, Any]:
    """Return one silence."""
    return {
        "silence": str(one.public_id),
        "tenant": one.tenant.slug,
        "covers": one_line(in_words(one)),
        "from": one.from_at.astimezone(UTC).isoformat(timespec="minutes"),
        "until": one.until_at.astimezone(UTC).isoformat(timespec="minutes"),
        "ended_by": one.ended_by,
        "reason": one.reason,
        "by": one.created_by,
    }


def table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return rows of equal columns as a table."""
    found = Table(title=f"{title}: {len(rows)}", title_justify="left")
    for name in rows[0] if rows else ():
        found.add_column(name.replace("_", " "))
    for row in rows:
        found.add_row(*(cell(value) for value in row.values()))
    return found
