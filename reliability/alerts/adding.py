"""Rules beside the shipped ones: of one source, kind or cause, or of money in one currency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from reliability import sql
from reliability.models import AlertRule, Source
from reliability.models.acting import Refused, record
from reliability.work.dead_letters import Act

Measure = AlertRule.Measure
OF_KINDS = frozenset(
    {Measure.OPEN_LETTERS, Measure.OLDEST_LETTER, Measure.MONEY, Measure.INFLOW, Measure.READY}
)
OF_CAUSES = OF_KINDS - {Measure.READY}
NAME_MAX = 120


@dataclass(frozen=True, kw_only=True)
class WantedRule:
    """A rule before it stands; levels in its measure's unit, a count, seconds or major units."""

    measure: str
    high: int
    low: int
    name: str
    source: Source | None = None
    kind: str = ""
    fingerprint: str = ""
    currency: str = ""
    hold: timedelta = timedelta(0)
    emails: Sequence[str] = ()
    owner: str = ""


def add_alert_rule(wanted: WantedRule, act: Act) -> AlertRule | Refused:
    """Add an alert rule; it looks with the next pass."""
    if why := _wrong(wanted, act):
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        rule = AlertRule.objects.create(
            tenant=act.tenant, source=wanted.source, kind=wanted.kind, measure=wanted.measure,
            fingerprint=wanted.fingerprint, currency=wanted.currency, name=wanted.name,
            high=wanted.high, low=wanted.low, hold_seconds=int(wanted.hold.total_seconds()),
            emails=list(wanted.emails), owner=wanted.owner,
        )  # fmt: skip
        record(
            act, "add alert rule", about="alert rule", about_id=str(rule.public_id),
            called=rule.name, measure=rule.measure, high=rule.high, low=rule.low,
        )  # fmt: skip
    return rule


def _wrong(wanted: WantedRule, act: Act) -> str:
    known = ", ".join(Measure.values)
    faults = {
        f"Unknown measure {wanted.measure!r}. Known: {known}.": (
            wanted.measure not in Measure.values
        ),
        "There is no such source.": (
            wanted.source is not None and wanted.source.tenant_id != act.tenant.pk
        ),
        f"A rule has a name of at most {NAME_MAX} characters.": (
            not 0 < len(wanted.name.strip()) <= NAME_MAX
        ),
        "A rule closes at or below where it opens, and above nothing.": (
            not 0 <= wanted.low <= wanted.high or wanted.high == 0
        ),
        "Only rules on letters and jobs name a kind.": (
            bool(wanted.kind) and wanted.measure not in OF_KINDS
        ),
        "Only rules on letters name a cause.": (
            bool(wanted.fingerprint) and wanted.measure not in OF_CAUSES
        ),
        "A rule on money, and no other, names its currency.": (
            bool(wanted.currency) != (wanted.measure == Measure.MONEY)
        ),
    }
    wrong = next((why for why, holds in faults.items() if holds), "")
    return wrong or next((why for email in wanted.emails if (why := _no_address(email))), "")


def _no_address(email: str) -> str:
    try:
        validate_email(email)
    except ValidationError:
        return f"{email!r} is not a mail address."
    return ""
