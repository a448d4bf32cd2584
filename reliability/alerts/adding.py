"""Rules as an admin wants them: added, changed, switched off and on, each with its audit entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.alerts.moves import end_unmeasured
from reliability.models import AlertChannel, AlertRule, Source
from reliability.models.acting import Refused, record
from reliability.work.dead_letters import Act

Measure = AlertRule.Measure
OF_KINDS = frozenset(
    {Measure.OPEN_LETTERS, Measure.OLDEST_LETTER, Measure.MONEY, Measure.INFLOW, Measure.READY}
)
OF_CAUSES = OF_KINDS - {Measure.READY}
NAME_MAX = 120
EMAILS_MAX = 20
LEVEL_MAX = 10**15
LENGTH_MAX = timedelta(days=30)
SCOPE = ("source_id", "kind", "fingerprint", "currency", "measure")
"""What a rule looks at; alerts of another look are not its alerts any more."""


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
    remind: timedelta = timedelta(hours=4)
    """Zero is never."""
    emails: Sequence[str] = ()
    channels: Sequence[AlertChannel] = ()
    owner: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """The rule's row, its tenant and channels apart."""
        return {
            "source_id": self.source.pk if self.source else None, "kind": self.kind,
            "measure": self.measure, "fingerprint": self.fingerprint,
            "currency": self.currency, "name": self.name, "high": self.high, "low": self.low,
            "hold_seconds": int(self.hold.total_seconds()),
            "remind_seconds": int(self.remind.total_seconds()),
            "emails": list(dict.fromkeys(self.emails)), "owner": self.owner,
        }  # fmt: skip


def add_alert_rule(wanted: WantedRule, act: Act) -> AlertRule | Refused:
    """Add an alert rule; it looks with the next pass."""
    if why := _wrong(wanted, act):
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        rule = AlertRule.objects.create(tenant=act.tenant, **wanted.columns)
        rule.channels.set(wanted.channels)
        _record(act, "add alert rule", rule)
    return rule


def change_alert_rule(rule: AlertRule, wanted: WantedRule, act: Act) -> AlertRule | Refused:
    """Change an alert rule; it looks so with the next pass.

    Where it looks at something else from now on, its living alerts end and nobody is told.
    Asking for what is so already changes nothing.
    """
    if why := _wrong(wanted, act):
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        fresh = AlertRule.objects.select_for_update().get(pk=rule.pk, tenant=act.tenant)
        changed = [n for n, value in wanted.columns.items() if getattr(fresh, n) != value]
        had = set(fresh.channels.standing().values_list("pk", flat=True))
        if had != {channel.pk for channel in wanted.channels}:
            fresh.channels.set(wanted.channels)
            changed.append("channels")
        if not changed:
            return fresh
        AlertRule.objects.filter(pk=fresh.pk).update(**wanted.columns)
        if set(changed) & set(SCOPE):
            end_unmeasured(AlertRule.objects.filter(pk=fresh.pk), timezone.now())
        fresh.refresh_from_db()
        _record(act, "change alert rule", fresh, changed=changed)
    return fresh


def switch_alert_rule(rule: AlertRule, act: Act, *, on: bool) -> AlertRule | Refused:
    """Switch a rule off, or on again; off, its living alerts end and nobody is told."""
    with transaction.atomic(using=sql.database().alias):
        found = AlertRule.objects.filter(pk=rule.pk, tenant=act.tenant)
        if not found.filter(enabled=not on).update(enabled=on):
            return Refused(f"It is switched {'on' if on else 'off'} already.")
        if not on:
            end_unmeasured(found, timezone.now())
        _record(act, f"switch alert rule {'on' if on else 'off'}", rule)
    return found.get()


def _record(act: Act, name: str, rule: AlertRule, **more: object) -> None:
    """Put on record what the rule is; of whom it tells, how many."""
    record(
        act, name, about="alert rule", about_id=str(rule.public_id), called=rule.name,
        measure=rule.measure, high=rule.high, low=rule.low, addresses=len(rule.emails),
        channels=[one.name for one in rule.channels.standing().order_by("pk")], **more,
    )  # fmt: skip


def _wrong(wanted: WantedRule, act: Act) -> str:
    faults = _scope_faults(wanted, act) | _level_faults(wanted)
    wrong = next((why for why, holds in faults.items() if holds), "")
    return wrong or next((why for email in wanted.emails if (why := _no_address(email))), "")


def _scope_faults(wanted: WantedRule, act: Act) -> dict[str, bool]:
    known = ", ".join(Measure.values)
    return {
        f"Unknown measure {wanted.measure!r}. Known: {known}.": (
            wanted.measure not in Measure.values
        ),
        "There is no such source.": (
            wanted.source is not None and wanted.source.tenant_id != act.tenant.pk
        ),
        "There is no such channel.": any(
            one.tenant_id != act.tenant.pk or one.removed_at for one in wanted.channels
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


def _level_faults(wanted: WantedRule) -> dict[str, bool]:
    lengths = (wanted.hold, wanted.remind)
    return {
        f"A rule has a name of at most {NAME_MAX} characters.": (
            not 0 < len(wanted.name.strip()) <= NAME_MAX
        ),
        "A rule closes below where it opens, and not below zero.": (
            not 0 <= wanted.low < wanted.high
        ),
        "A level that high is never reached.": wanted.high > LEVEL_MAX,
        "A rule holds, and reminds, within thirty days.": (
            not all(timedelta(0) <= length <= LENGTH_MAX for length in lengths)
        ),
        f"A rule tells {EMAILS_MAX} mail addresses at most: use a list address.": (
            len(wanted.emails) > EMAILS_MAX
        ),
        f"Its owner is named in at most {NAME_MAX} characters.": len(wanted.owner) > NAME_MAX,
        "A currency has three letters, such as EUR.": (
            bool(wanted.currency) and len(wanted.currency) != len("EUR")
        ),
    }


def _no_address(email: str) -> str:
    try:
        validate_email(email)
    except ValidationError:
        return f"{email!r} is not a mail address."
    return ""
