"""The rules every tenant starts with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.core.validators import validate_email
from django.db import transaction

from reliability.conf import Conf, conf
from reliability.models import AlertRule, Tenant

Measure = AlertRule.Measure
NO_HOLD = timedelta(0)


@dataclass(frozen=True)
class Shipped:
    """One rule before it belongs to a tenant; levels in the measure's own unit."""

    measure: AlertRule.Measure
    name: str
    high: int
    low: int
    hold: timedelta = NO_HOLD


def shipped(settings: Conf) -> tuple[Shipped, ...]:
    """Return the shipped rules at the settings in force."""
    day = int(settings.oldest_letter.total_seconds())
    late = int(settings.sweep_alarm_after.total_seconds())
    back = int(settings.sweep_late_after.total_seconds())
    waits = int(settings.oldest_ready.total_seconds())
    held = int(settings.snapshot_held.total_seconds())
    return (
        Shipped(
            Measure.OPEN_LETTERS,
            "Open dead letters",
            settings.alert_high,
            settings.alert_low,
            settings.alert_hold,
        ),
        Shipped(Measure.OLDEST_LETTER, "A dead letter nobody touched", day, day // 2),
        Shipped(Measure.SWEEP_LATE, "The sweep is late", late, back),
        Shipped(Measure.STATEMENT, "Statement absent or incomplete", 1, 0),
        Shipped(Measure.CONSERVATION, "Accepted events without a job", 1, 0),
        Shipped(Measure.READY, "Due jobs are not started", waits, waits // 5),
        Shipped(Measure.BEAT, "Beat is silent", late, back),
        Shipped(Measure.SNAPSHOT, "An old snapshot is held", held, held // 2),
    )


@transaction.atomic
def ship_rules(tenant: Tenant, emails: Sequence[str]) -> list[AlertRule]:
    """Give a tenant the shipped rules, for each of its sources; those it has are left alone.

    Raises Django's ``ValidationError`` for an address that is none.
    """
    for email in emails:
        validate_email(email)
    return [_ship(tenant, rule, list(emails)) for rule in shipped(conf())]


def _ship(tenant: Tenant, rule: Shipped, emails: list[str]) -> AlertRule:
    """Return the tenant's first rule of this measure on everything, made now where it has none."""
    scope = {"tenant": tenant, "source": None, "kind": "", "fingerprint": ""}
    has = AlertRule.objects.filter(**scope, measure=rule.measure).order_by("pk").first()
    return has or AlertRule.objects.create(
        **scope, measure=rule.measure, name=rule.name, high=rule.high, low=rule.low,
        hold_seconds=int(rule.hold.total_seconds()), emails=emails,
    )  # fmt: skip
