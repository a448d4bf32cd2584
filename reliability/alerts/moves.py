"""How an alert moves: one guarded statement each, and the mails it owes in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, assert_never

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from reliability.alerts.measures import facts_of
from reliability.alerts.rules import (
    Drop,
    Firing,
    Hold,
    Hush,
    Levels,
    Open,
    Pending,
    Quiet,
    Remind,
    Resolve,
    State,
    Stay,
    Tell,
    Verdict,
    decide,
)
from reliability.models import Alert, AlertDelivery, AlertRule

Move = Literal["nothing", "held", "dropped", "opened", "told", "reminded", "resolved"]
LIVE = (Alert.Status.PENDING, Alert.Status.OPEN)


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look of one rule at one scope: the value now, and the alert that lives there."""

    rule: AlertRule
    source_id: int | None
    alert: Alert | None
    value: int
    now: datetime
    hush: Hush = ""
    hush_until: datetime | None = None
    uncounted: int = 0

    def verdict(self) -> Verdict:
        """Return what the rule says of it."""
        state = state_of(self.alert)
        return decide(
            levels_of(self.rule), state, value=self.value, now=self.now, hush=self.hush
        )

    @property
    def words(self) -> dict[str, Any]:
        """The columns that say what was seen, and why nobody is told."""
        return {
            "value": self.value,
            "withheld": self.hush,
            "withheld_until": self.hush_until,
            "uncounted": self.uncounted,
        }


def levels_of(rule: AlertRule) -> Levels:
    """Read a rule's row."""
    return Levels(
        high=rule.high,
        low=rule.low,
        hold=timedelta(seconds=rule.hold_seconds),
        remind=timedelta(seconds=rule.remind_seconds),
    )


def state_of(alert: Alert | None) -> State:
    """Read a living alert's row; ``None`` is quiet."""
    if alert is None:
        return Quiet()
    if alert.opened_at is None:
        return Pending(alert.since)
    return Firing(
        alert.told_at or alert.opened_at, alert.reminded_at, told=alert.told_at is not None
    )


def move(look: Look) -> Move:
    """Apply the verdict in the caller's transaction; another evaluator's move makes it nothing."""
    match look.verdict():
        case Hold(since):
            done = _hold(look, since)
        case Open():
            done = _open(look)
        case Tell():
            done = _tell(look)
        case Remind():
            done = _remind(look)
        case Resolve():
            done = _resolve(look)
        case Drop():
            done = _drop(look)
        case Stay():
            done = _keep(look)
        case never:
            assert_never(never)
    return done


def end_unmeasured(rules: QuerySet[AlertRule], now: datetime) -> None:
    """End the alerts of rules that look no more, without a message: nobody measured them low."""
    for status, end in (
        (Alert.Status.PENDING, Alert.Status.DROPPED),
        (Alert.Status.OPEN, Alert.Status.RESOLVED),
    ):
        of_these = Alert.objects.filter(rule__in=rules, status=status)
        of_these.update(status=end, resolved_at=now)


def _hold(look: Look, since: datetime) -> Move:
    """Begin to wait. The unique index lets one of two evaluators in."""
    try:
        with transaction.atomic():
            Alert.objects.create(
                tenant_id=look.rule.tenant_id,
                rule=look.rule,
                source_id=look.source_id,
                status=Alert.Status.PENDING,
                since=since,
                peak=look.value,
                **look.words,
            )
    except IntegrityError:
        return "nothing"
    return "held"


def _open(look: Look) -> Move:
    since = look.alert.since if look.alert else look.now
    if look.alert is None and _hold(look, since) == "nothing":
        return "nothing"
    scope = Alert.objects.filter(Q(source=look.source_id), rule=look.rule)
    opened = scope.filter(status=Alert.Status.PENDING, since=since).update(
        status=Alert.Status.OPEN,
        opened_at=look.now,
        told_at=None if look.hush else look.now,
        peak=Greatest(F("peak"), look.value),
        **look.words,
    )
    if not opened:
        return "nothing"
    alert = scope.select_related("rule").get(status=Alert.Status.OPEN)
    Alert.objects.filter(pk=alert.pk).update(facts=facts_of(alert, look.now))
    if not look.hush:
        _owe(alert, "opened", look)
    return "opened"


def _tell(look: Look) -> Move:
    """Say late, once, what opened while it was hushed and still holds."""
    alert = _living(look)
    told = Alert.objects.filter(pk=alert.pk, status=Alert.Status.OPEN, told_at=None).update(
        told_at=look.now, peak=Greatest(F("peak"), look.value), **look.words
    )
    if not told:
        return "nothing"
    _owe(alert, "opened", look)
    return "told"


def _remind(look: Look) -> Move:
    alert = _living(look)
    told = Alert.objects.filter(
        pk=alert.pk, status=Alert.Status.OPEN, reminded_at=alert.reminded_at
    ).update(reminded_at=look.now, peak=Greatest(F("peak"), look.value), **look.words)
    if not told:
        return "nothing"
    earlier = alert.deliveries.filter(occasion__startswith="reminder")
    number = earlier.values("occasion").distinct().count() + 1
    _owe(alert, f"reminder {number}", look)
    return "reminded"


def _resolve(look: Look) -> Move:
    alert = _living(look)
    resolved = Alert.objects.filter(pk=alert.pk, status=Alert.Status.OPEN).update(
        status=Alert.Status.RESOLVED, resolved_at=look.now, value=look.value
    )
    if not resolved:
        return "nothing"
    if _heard(alert, look):
        _owe(alert, "resolved", look)
    return "resolved"


def _heard(alert: Alert, look: Look) -> bool:
    """Tell whether anybody heard, or will hear, that it opened; a silence takes back what waits."""
    if alert.told_at is None:
        return False
    owed = alert.deliveries.filter(occasion="opened")
    unsent = owed.filter(status=AlertDelivery.Status.PENDING, tries=0)
    if look.hush != "silenced" or owed.count() > unsent.count():
        return True
    unsent.delete()
    return False


def _drop(look: Look) -> Move:
    alert = _living(look)
    dropped = Alert.objects.filter(
        pk=alert.pk, status=Alert.Status.PENDING, since=alert.since
    ).update(status=Alert.Status.DROPPED, resolved_at=look.now, value=look.value)
    return "dropped" if dropped else "nothing"


def _keep(look: Look) -> Move:
    alert = look.alert
    if alert and any(getattr(alert, name) != seen for name, seen in look.words.items()):
        Alert.objects.filter(pk=alert.pk, status=alert.status).update(
            peak=Greatest(F("peak"), look.value), **look.words
        )
    return "nothing"


def _living(look: Look) -> Alert:
    assert look.alert is not None, (
        "only a living alert can be reminded of, resolved or dropped"
    )
    return look.alert


def _owe(alert: Alert, occasion: str, look: Look) -> None:
    """Write one message per address and channel; the same occasion is owed once."""
    mails = [AlertDelivery(email=email) for email in dict.fromkeys(look.rule.emails)]
    others = [
        AlertDelivery(email=channel.key, channel=channel)
        for channel in look.rule.channels.standing().order_by("pk")
    ]
    owed = [*mails, *others]
    for one in owed:
        one.tenant_id, one.alert, one.occasion = alert.tenant_id, alert, occasion
        one.value, one.counted_at, one.due_at = look.value, look.now, look.now
    AlertDelivery.objects.bulk_create(owed, ignore_conflicts=True)
