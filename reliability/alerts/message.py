"""An alert's mail: one link first, then counts, the owner and times; never a payload or a key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from reliability.alerts.wording import at, headline, one_line, spoken, the_rule, why_open
from reliability.conf import conf
from reliability.models import Alert, AlertDelivery, AlertRule

Measure = AlertRule.Measure
PREFIX = "[Reliability]"
LETTERS = "/dead-letters/"
PAGES = {
    Measure.OPEN_LETTERS: LETTERS,
    Measure.OLDEST_LETTER: LETTERS,
    Measure.MONEY: LETTERS,
    Measure.INFLOW: LETTERS,
    Measure.READY: "/jobs/",
    Measure.SNAPSHOT: "/runs/",
    Measure.BEAT: "/runs/",
    Measure.SWEEP_LATE: "/runs/",
    Measure.STATEMENT: "/reports/",
}
Fact = tuple[str, str]


def compose(owed: AlertDelivery, *, waiting: int) -> EmailMessage:
    """Return the mail of one delivery; ``waiting`` more to its address are over the hour's limit.

    Reads ``alert``, its ``rule``, ``source`` and ``tenant``. The ``Message-ID`` depends on alert,
    occasion and address alone: a mail that is sent again after a crash is recognised as one.
    """
    alert, said = alert_of(owed), headline_of(owed)
    word = owed.occasion.partition(" ")[0]
    context = {
        "said": said,
        "link": link(alert),
        "rule": the_rule(alert.rule),
        "facts": list(_facts(owed)),
        "remind": spoken(timedelta(seconds=alert.rule.remind_seconds)),
        "reminds": alert.rule.remind_seconds > 0,
        "alerts": url("/alerts/"),
        "waiting": waiting,
        "per_hour": conf().mails_per_hour_max,
    }
    return EmailMessage(
        subject=subject(owed),
        body=render_to_string(f"console/alerts/mail/{word}.txt", context),
        to=[owed.email],
        headers={
            "Message-ID": message_id(owed),
            "Auto-Submitted": "auto-generated",  # RFC 3834: no absence notes in return
            "X-Reliability-Alert": str(alert.public_id),
            "X-Reliability-Count": str(owed.value),
        },
    )


def subject(owed: AlertDelivery) -> str:
    """Say in one line what the mail is about."""
    said, rule = headline_of(owed), alert_of(owed).rule
    match owed.occasion.split():
        case ["reminder", number]:
            return f"{PREFIX} Reminder {number}: {said} ({why_open(rule, owed.value)})"
        case ["resolved"]:
            return f"{PREFIX} Resolved: {said}"
        case _:
            return f"{PREFIX} {said} ({why_open(rule, owed.value)})"


def headline_of(owed: AlertDelivery) -> str:
    """Say what stood where when the mail's value was counted."""
    alert = alert_of(owed)
    scope = one_line(alert.source.slug if alert.source else alert.tenant.name)
    if alert.rule.kind:
        scope = f"{scope}, {one_line(alert.rule.kind)}"
    return headline(alert.rule.measure, owed.value, scope)


def alert_of(owed: AlertDelivery) -> Alert:
    """Return what a message tells of; a morning mail or a test tells of no alert."""
    assert owed.alert is not None, "only a message of an alert is composed here"
    return owed.alert


def link(alert: Alert) -> str:
    """Return the page that lists the rows behind the alert's number, in the alert's tenant."""
    page = PAGES.get(Measure(alert.rule.measure), "/")
    if page == LETTERS:
        rule, source = alert.rule, alert.source
        asked = {
            "source": source.slug if source else "",
            "kind": rule.kind,
            "cause": rule.fingerprint,
        }
        page += "?" + urlencode({name: value for name, value in asked.items() if value})
    return url(f"/in/{alert.tenant.slug}{page.rstrip('?')}")


def url(path: str) -> str:
    """Return an address of this deployment's own console; no other host is ever linked."""
    return f"{getattr(settings, 'RELIABILITY_BASE_URL', '').rstrip('/')}{path}"


def message_id(owed: AlertDelivery) -> str:
    """Return the same id for the same alert, occasion and address, whoever sends it."""
    host = urlsplit(url("/")).hostname or "reliability.invalid"
    return f"<{stable_id(owed)}@{host}>"


def stable_id(owed: AlertDelivery) -> str:
    """Return 40 hexadecimal digits that name alert, occasion and address, and no other message."""
    about = owed.alert.public_id if owed.alert else owed.tenant.public_id
    said = f"{about}|{owed.occasion}|{owed.email}"
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def _facts(owed: AlertDelivery) -> Iterator[Fact]:
    alert = alert_of(owed)
    zone = alert.source.zone if alert.source else "UTC"
    yield "Tenant", one_line(alert.tenant.name)
    yield "Rule", one_line(alert.rule.name)
    yield "Owner", one_line(alert.rule.owner) or "nobody yet"
    if owed.occasion == "opened" and (new := alert.facts.get("last_hour")) is not None:
        yield "What changed", f"{new} of them came in the last hour"
    if owed.occasion == "opened" and alert.uncounted:
        yield "Not counted", f"{alert.uncounted} of it: muted causes or silenced kinds"
    if owed.occasion != "opened" and alert.rule.measure == Measure.OPEN_LETTERS:
        yield "Peak", str(alert.peak)
    yield "High since", at(alert.since, zone)
    if alert.opened_at and owed.occasion != "opened":
        yield "Opened", at(alert.opened_at, zone)
        yield "Open for", spoken(owed.counted_at - alert.opened_at)
    yield "Counted", at(owed.counted_at, zone)
