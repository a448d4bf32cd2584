"""The morning mail: one a tenant and local day, a line for each source, also when all is green."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Abs
from django.template.loader import render_to_string
from django.utils import timezone

from reliability import sql
from reliability.alerts.addresses import addresses
from reliability.alerts.message import PREFIX, Fact, message_id, url
from reliability.alerts.wording import at, headline, one_line, sums
from reliability.models import (
    Alert,
    AlertDelivery,
    DeadLetter,
    Discrepancy,
    Report,
    Source,
    Tenant,
)
from reliability.models.acting import Refused, record
from reliability.work.dead_letters import Act

MORNING = "morning"
ONE_DAY = timedelta(days=1)
AGREES, DIFFERS, NO_REPORT = "agrees", "differs", "no report yet"
COUNTED = {
    AGREES: ("agrees", "agree"),
    DIFFERS: ("has differences", "have differences"),
    Report.Completeness.INCOMPLETE: ("is incomplete", "are incomplete"),
    Report.Completeness.ABSENT: ("has no statement", "have no statement"),
    NO_REPORT: ("has no report yet", "have no report yet"),
}
"""How many of the sources stand how, in the subject's order."""
ALERTS_MAX = 20


@dataclass(frozen=True)
class Line:
    """One source: its slug, the verdict of its last closed day, and what that came to."""

    source: str
    verdict: str
    words: str
    standing: str


@dataclass(frozen=True)
class Morning:
    """What one mail says."""

    subject: str
    body: str


def owe_mornings(now: datetime) -> int:
    """Write down the mails of every tenant whose morning has come; return how many tenants.

    Each local day is owed once, whoever looks and however often; one that was missed is owed late
    on its own day, and never on the next. A tenant's first mail comes on its second day.
    """
    tenants = Tenant.objects.exclude(morning_at=None).filter(sources__internal=False)
    return sum(_owe(tenant, now) for tenant in tenants.distinct().order_by("pk"))


def _owe(tenant: Tenant, now: datetime) -> bool:
    local = now.astimezone(zone_of(tenant))
    occasion = f"{MORNING} {local.date().isoformat()}"
    born = tenant.created_at.astimezone(zone_of(tenant)).date()
    if local.time() < (tenant.morning_at or local.time()) or born == local.date():
        return False
    mails = AlertDelivery.objects.filter(tenant=tenant, alert=None, occasion=occasion)
    if mails.exists():
        return False
    owed = [
        AlertDelivery(
            tenant=tenant, occasion=occasion, email=email, value=0, counted_at=now, due_at=now
        )
        for email in addresses(tenant)
    ]
    AlertDelivery.objects.bulk_create(owed, ignore_conflicts=True)
    return bool(owed)


def set_morning(act: Act, *, at_time: time | None, zone: str) -> Tenant | Refused:
    """Say when a tenant's morning mail comes; ``at_time`` of ``None`` is never, no zone its sources'."""
    if zone and zone not in available_timezones():
        return Refused(f"{zone!r} is no time zone: use a name such as Europe/Amsterdam.")
    with transaction.atomic(using=sql.database().alias):
        Tenant.objects.filter(pk=act.tenant.pk).update(morning_at=at_time, morning_zone=zone)
        said = at_time.isoformat("minutes") if at_time else "never"
        record(
            act,
            "set morning mail",
            about="tenant",
            about_id=act.tenant.slug,
            at=said,
            zone=zone,
        )
    return Tenant.objects.get(pk=act.tenant.pk)


def zone_of(tenant: Tenant) -> ZoneInfo:
    """Return the zone of a tenant's mornings: its own, else its first source's."""
    name = tenant.morning_zone
    if not name:
        first = Source.objects.filter(tenant=tenant, internal=False).order_by("pk").first()
        name = first.zone if first else "UTC"
    return _zone(name)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def is_past(owed: AlertDelivery, now: datetime) -> bool:
    """Tell whether a morning mail's own day is over."""
    word, _, day = owed.occasion.partition(" ")
    if word != MORNING:
        return False
    return now.astimezone(zone_of(owed.tenant)).date() > date.fromisoformat(day)


def compose(owed: AlertDelivery) -> EmailMessage:
    """Return the mail of one morning: verdicts, counts and sums; no payload, no key."""
    told = morning(owed.tenant, timezone.now())
    return EmailMessage(
        subject=told.subject,
        body=told.body,
        to=[owed.email],
        headers={"Message-ID": message_id(owed), "Auto-Submitted": "auto-generated"},
    )


def morning(tenant: Tenant, now: datetime) -> Morning:
    """Say how a tenant's sources stand at a moment: each by its own last closed local day."""
    day = now.astimezone(zone_of(tenant)).date() - ONE_DAY
    sources = Source.objects.filter(tenant=tenant, internal=False).order_by("slug")
    lines = [_line(source, now=now, day=day) for source in sources]
    said = f"{day:%a} {day.day} {day:%b}: {_stand(lines)}"
    context = {
        "said": said,
        "link": url(f"/in/{tenant.slug}/reports/"),
        "lines": lines,
        "width": max((len(line.source) for line in lines), default=0) + 2,
        "facts": list(_facts(tenant, now)),
        "alerts": url(f"/in/{tenant.slug}/alerts/"),
    }
    body = render_to_string("console/alerts/mail/morning.txt", context)
    return Morning(f"{PREFIX} {said}", body)


def _line(source: Source, *, now: datetime, day: date) -> Line:
    own = now.astimezone(_zone(source.zone)).date() - ONE_DAY
    name = one_line(source.slug) + (f" ({own:%a} {own.day} {own:%b})" if own != day else "")
    if not source.statement_kinds:
        return Line(name, "not compared", "no statement is expected", "")
    report = Report.objects.filter(source=source, day=own, current=True).first()
    if report is None:
        return Line(name, NO_REPORT, "its statement may still come", NO_REPORT)
    if report.completeness not in Report.JUDGED:
        said = "no statement came" if report.statement_id is None else "verdicts withheld"
        return Line(name, report.completeness, said, report.completeness)
    found = Discrepancy.objects.open().filter(report=report)
    words = _differences(found)
    return Line(
        name, report.completeness, words or "nothing open", DIFFERS if words else AGREES
    )


def _differences(found: QuerySet[Discrepancy]) -> str:
    missing = found.filter(family=Discrepancy.Family.MISSING)
    number, others = missing.count(), found.exclude(family=Discrepancy.Family.MISSING).count()
    parts = [f"{number} missing, {_worth(missing, 'their_minor')}" if number else ""]
    parts.append(f"{others} other difference{'' if others == 1 else 's'}" if others else "")
    return "; ".join(part for part in parts if part)


def _worth(rows: QuerySet[Discrepancy] | QuerySet[DeadLetter], column: str) -> str:
    """Say what rows are worth, per currency; refunds apart, nothing netted."""
    of_unit = rows.order_by("currency", "exponent").values_list("currency", "exponent")
    came, back = Q(**{f"{column}__gte": 0}), Q(**{f"{column}__lt": 0})
    found = list(
        of_unit.filter(**{f"{column}__isnull": False}, currency__isnull=False).annotate(
            came=Sum(column, filter=came), back=Sum(Abs(column), filter=back), n=Count("pk")
        )
    )
    charges = sums((minor, unit, places) for unit, places, minor, _, _ in found)
    refunds = sums((minor, unit, places) for unit, places, _, minor, _ in found)
    apart = f"refunds {refunds} apart" if refunds else ""
    return ", ".join(part for part in (charges, apart) if part) or "no amount known"


def _stand(lines: list[Line]) -> str:
    """Say how many sources stand how: ``2 of 4 sources agree, 1 is incomplete``."""
    compared = [line for line in lines if line.standing]
    if not compared:
        return "no source is compared"
    count = Counter(line.standing for line in compared)
    if count[AGREES] == len(compared):
        return f"all {len(compared)} sources agree" if len(compared) > 1 else "1 source agrees"
    parts = [f"{count[AGREES]} of {len(compared)} sources agree"]
    for standing, (one, many) in COUNTED.items():
        if standing != AGREES and (number := count[standing]):
            parts.append(f"{number} {one if number == 1 else many}")
    return ", ".join(parts)


def _facts(tenant: Tenant, now: datetime) -> Iterator[Fact]:
    letters = DeadLetter.objects.open().filter(tenant=tenant)
    number = letters.count()
    worth = f": {_worth(letters, 'amount_minor')} at risk" if number else ""
    yield "Dead letters", f"{number} open{worth}"
    alerts = Alert.objects.filter(tenant=tenant, status=Alert.Status.OPEN)
    shown = list(alerts.select_related("rule", "source").order_by("since")[:ALERTS_MAX])
    yield "Alerts open", str(alerts.count())
    for alert in shown:
        scope = one_line(alert.source.slug if alert.source else tenant.name)
        yield "", headline(alert.rule.measure, alert.value, scope)
    yield "Counted", at(now, zone_of(tenant).key)
