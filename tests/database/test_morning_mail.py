"""The morning mail: once a local day, late rather than never, and a line for every source."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from reliability.alerts.deliver import Delivered, deliver
from reliability.alerts.morning import morning, owe_mornings
from reliability.alerts.shipped import ship_rules
from reliability.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    Artefact,
    AuditEntry,
    DeadLetter,
    Discrepancy,
    Report,
    Source,
    Statement,
    Tenant,
)
from tests.database.letters import a_source, a_tenant, dead_letters

FINANCE = "finance@acme.example"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
AMSTERDAM = "Europe/Amsterdam"
BEFORE = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)
EIGHT = datetime(2026, 10, 14, 6, 0, tzinfo=UTC)
"""08:00 in Amsterdam, summer time."""
BODY = """\
Tue 13 Oct: 1 of 4 sources agree, 1 has differences, 1 is incomplete, 1 has no statement.

The reports:
https://reliability.acme.example/in/acme/reports/

adyen-eu     incomplete     verdicts withheld
bank         absent         no statement came
github       not compared   no statement is expected
gocardless   unproven       nothing open
stripe-live  complete       3 missing, EUR 345.50 and JPY 700, refunds EUR 18.40 apart; 1 other difference

Dead letters   2 open: EUR 39.98 at risk
Alerts open    1
               2 dead letters open in stripe-live
Counted        Wed 14 Oct 2026 08:00 Europe/Amsterdam, 06:00 UTC

Rules, alerts and their history:
https://reliability.acme.example/in/acme/alerts/

One mail each morning, also when all is green: a morning without one means that something is wrong.
"""


@pytest.fixture
def clock(settings: LazySettings) -> Iterator[time_machine.Traveller]:
    settings.RELIABILITY_BASE_URL = "https://reliability.acme.example"
    with time_machine.travel(BEFORE, tick=False) as traveller:
        yield traveller


@pytest.fixture
def acme(db: None, clock: time_machine.Traveller) -> Tenant:
    return a_watched_tenant()


def a_watched_tenant(slug: str = "acme", zone: str = AMSTERDAM) -> Tenant:
    tenant = a_tenant(slug)
    compared(tenant, "stripe-live", zone)
    ship_rules(tenant, [FINANCE])
    return tenant


def compared(tenant: Tenant, slug: str, zone: str = AMSTERDAM) -> Source:
    source = a_source(tenant, slug, zone=zone)
    source.statement_kinds = ["charge"]
    source.save()
    return source


def tick() -> int:
    """Do what beat does each minute; return how many mails went out."""
    owe_mornings(datetime.now(UTC))
    return deliver().sent


def a_report(source: Source, day: date, completeness: str, **more: Any) -> Report:
    return Report.objects.create(
        tenant=source.tenant, source=source, day=day, version=1, starts_at=BEFORE, ends_at=BEFORE,
        completeness=completeness, inputs_sha256=bytes(32), created_at=BEFORE, created_by="beat",
        **more,
    )  # fmt: skip


def a_statement(source: Source) -> Statement:
    file = Artefact.objects.create(
        tenant=source.tenant, source=source, sha256=bytes(32), size_bytes=0, name="day.csv",
        received_at=BEFORE, received_by="ines",
    )  # fmt: skip
    return Statement.objects.create(
        tenant=source.tenant, source=source, artefact=file, statement_format="mapped-csv",
        day=BEFORE.date(), created_at=BEFORE,
    )  # fmt: skip


def differing(report: Report, family: str, minor: int, **more: Any) -> None:
    Discrepancy.objects.create(
        **{
            "tenant": report.tenant, "source": report.source, "operation_class": "charge",
            "reference": f"ch_{Discrepancy.objects.count()}", "family": family,
            "verdict": family, "currency": "EUR", "exponent": 2, "their_minor": minor,
            "first_day": report.day, "last_day": report.day, "report": report,
            "opened_at": BEFORE,
        }
        | more
    )  # fmt: skip


# When it comes.


def test_it_comes_at_eight_in_the_zone_of_the_source_and_once(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    clock.move_to(EIGHT - timedelta(seconds=1))
    assert tick() == 0
    clock.move_to(EIGHT)
    assert [tick(), tick()] == [1, 0]
    for _ in range(20):
        clock.shift(45 * MINUTE)
        assert tick() == 0
    clock.move_to(EIGHT + DAY - MINUTE)
    assert tick() == 0
    clock.move_to(EIGHT + DAY)
    assert tick() == 1
    assert [sent.to for sent in mail.outbox] == [[FINANCE], [FINANCE]]


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_owe_one_mail(clock: time_machine.Traveller) -> None:
    a_watched_tenant()
    clock.move_to(EIGHT)
    with transaction.atomic():
        assert owe_mornings(EIGHT) == 1
        thread = threading.Thread(target=owe_elsewhere)
        thread.start()
        wait_until_somebody_waits()
    thread.join(timeout=20)
    assert AlertDelivery.objects.count() == 1


def owe_elsewhere() -> None:
    try:
        owe_mornings(EIGHT)
    finally:
        connection.close()


def wait_until_somebody_waits() -> None:
    """Return once another session waits for a lock of ours; at most 4 s."""
    with connection.cursor() as cursor:
        for _ in range(400):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if (row := cursor.fetchone()) and row[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    pytest.fail("The second beat never met the first.")


def test_a_missed_morning_comes_late_on_its_own_day_and_never_on_the_next(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    clock.move_to(EIGHT + 15 * HOUR)  # 23:00 in Amsterdam: beat was away all day
    assert tick() == 1
    clock.move_to(EIGHT + 2 * DAY - 2 * HOUR)  # the day between was missed whole
    assert tick() == 0
    clock.move_to(EIGHT + 2 * DAY)
    assert tick() == 1
    days = list(AlertDelivery.objects.order_by("pk").values_list("occasion", flat=True))
    assert days == ["morning 2026-10-14", "morning 2026-10-16"]


class Refuses(BaseEmailBackend):
    def send_messages(self, _messages: Any) -> int:
        raise ConnectionRefusedError


def test_a_mail_that_could_not_be_sent_on_its_day_is_given_up(
    acme: Tenant, clock: time_machine.Traveller, settings: LazySettings
) -> None:
    working, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, f"{__name__}.Refuses"
    clock.move_to(EIGHT + 15 * HOUR)
    assert tick() == 0
    settings.EMAIL_BACKEND = working
    clock.shift(HOUR)
    assert deliver() == Delivered(given_up=1)
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("day", "utc_hour"),
    [((2026, 10, 24), 6), ((2026, 10, 25), 7), ((2027, 3, 27), 7), ((2027, 3, 28), 6)],
)
def test_summer_time_moves_the_instant_and_not_the_local_hour(
    day: tuple[int, int, int],
    utc_hour: int,
    acme: Tenant,
    clock: time_machine.Traveller,
) -> None:
    at = datetime(*day, utc_hour, tzinfo=UTC)
    clock.move_to(at - MINUTE)
    assert tick() == 0
    clock.move_to(at)
    assert tick() == 1


@pytest.mark.parametrize(
    ("day", "hours"),
    [
        ((2027, 3, 28), [0.99, 1.0, 1.5]),  # 02:30 does not exist: 01:59 is followed by 03:00
        ((2026, 10, 25), [0.49, 0.5, 1.5]),  # 02:30 comes twice
    ],
)
def test_an_hour_that_a_clock_change_skips_or_repeats_brings_one_mail(
    day: tuple[int, int, int], hours: list[float], acme: Tenant, clock: time_machine.Traveller
) -> None:
    Tenant.objects.update(morning_at=time(2, 30))
    midnight = datetime(*day, tzinfo=UTC)
    sent = []
    for hour in hours:
        clock.move_to(midnight + hour * HOUR)
        sent.append(tick())
    assert sent == [0, 1, 0]


def test_each_tenant_has_its_own_morning_and_one_that_wants_none_gets_none(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    a_watched_tenant("globex", "America/New_York")
    silent = a_watched_tenant("third")
    Tenant.objects.filter(pk=silent.pk).update(morning_at=None)
    inside = a_tenant("inside")
    ship_rules(inside, ["inside@inside.example"])
    clock.move_to(EIGHT)
    tick()
    clock.move_to(EIGHT + 6 * HOUR)
    tick()
    owed = AlertDelivery.objects.order_by("pk").values_list("tenant__slug", "sent_at")
    assert list(owed) == [("acme", EIGHT), ("globex", EIGHT + 6 * HOUR)]


def test_an_address_that_is_added_after_the_morning_gets_its_first_mail_the_next_day(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    clock.move_to(EIGHT)
    tick()
    AlertRule.objects.filter(measure="statement").update(emails=[FINANCE, "new@acme.example"])
    clock.shift(HOUR)
    assert tick() == 0
    clock.move_to(EIGHT + DAY)
    assert tick() == 2


def test_a_tenant_that_began_today_gets_its_first_mail_tomorrow(
    clock: time_machine.Traveller, db: None
) -> None:
    clock.move_to(EIGHT + HOUR)
    a_watched_tenant()
    assert tick() == 0
    clock.move_to(EIGHT + DAY)
    assert tick() == 1


# What it says.


def a_mixed_morning(acme: Tenant) -> None:
    yesterday = date(2026, 10, 13)
    stripe = Source.objects.get()
    found = a_report(stripe, yesterday, "complete")
    differing(found, "missing", 34_550)
    differing(found, "missing", 700, currency="JPY", exponent=0)
    differing(found, "missing", -1_840)
    differing(found, "mismatch", 500)
    differing(found, "missing", 99_999, status="recovered")
    adyen = compared(acme, "adyen-eu")
    a_report(adyen, yesterday, "incomplete", statement=a_statement(adyen))
    a_report(compared(acme, "bank"), yesterday, "absent")
    a_report(compared(acme, "gocardless"), yesterday, "unproven")
    a_source(acme, "github", zone=AMSTERDAM)
    dead_letters(stripe, 2)
    rule = AlertRule.objects.get(tenant=acme, measure="open letters")
    Alert.objects.create(
        tenant=acme, rule=rule, source=stripe, status="open", since=BEFORE, opened_at=BEFORE,
        value=2, peak=2,
    )  # fmt: skip


def test_it_has_a_line_for_each_source_and_nothing_of_a_customer(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    a_mixed_morning(acme)
    clock.move_to(EIGHT)
    tick()
    [sent] = mail.outbox
    assert sent.subject == (
        "[Reliability] Tue 13 Oct: 1 of 4 sources agree, 1 has differences, 1 is incomplete, "
        "1 has no statement"
    )
    assert str(sent.body).rstrip() + "\n" == BODY
    letter = DeadLetter.objects.select_related("job__key")[0]
    for told in ("4242424242424242", "jane.doe", "evt_", "ch_", "re_1", letter.job.key.key):
        assert told not in sent.body


def test_it_comes_when_all_is_green_too(acme: Tenant, clock: time_machine.Traveller) -> None:
    a_report(Source.objects.get(), date(2026, 10, 13), "complete")
    clock.move_to(EIGHT)
    tick()
    assert mail.outbox[0].subject == "[Reliability] Tue 13 Oct: 1 source agrees"
    assert "stripe-live  complete       nothing open\n" in str(mail.outbox[0].body)
    assert "Dead letters   0 open\nAlerts open    0\n" in str(mail.outbox[0].body)


def test_a_day_without_a_report_agrees_with_nothing(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    assert "0 of 1 sources agree, 1 has no report yet" in morning(acme, EIGHT).subject


def test_a_source_in_another_zone_is_told_of_its_own_last_day(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    honolulu = compared(acme, "pacific", "Pacific/Honolulu")  # 20:00 on the 13th there
    a_report(honolulu, date(2026, 10, 12), "complete")
    assert "pacific (Mon 12 Oct)  complete       nothing open\n" in morning(acme, EIGHT).body


# The command.


def alerts(*arguments: str) -> str:
    out = io.StringIO()
    call_command("alerts", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_mail_and_sends_nothing(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    clock.move_to(EIGHT)
    shown = alerts("morning", "--tenant", "acme")
    assert shown.startswith("Subject: [Reliability] Tue 13 Oct: 0 of 1 sources agree")
    assert not AlertDelivery.objects.exists()


def test_the_command_moves_the_morning_and_the_trail_says_so(
    acme: Tenant, clock: time_machine.Traveller
) -> None:
    alerts("morning", "--tenant", "acme", "--at", "07:30", "--zone", "Asia/Tokyo")
    clock.move_to(datetime(2026, 10, 13, 22, 29, tzinfo=UTC))
    assert tick() == 0
    clock.shift(MINUTE)
    assert tick() == 1
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.facts) == (
        "set morning mail", {"at": "07:30", "zone": "Asia/Tokyo"},
    )  # fmt: skip
    alerts("morning", "--tenant", "acme", "--at", "never")
    assert Tenant.objects.get().morning_at is None
    with pytest.raises(CommandError, match="no time zone"):
        alerts("morning", "--tenant", "acme", "--zone", "Mars/Olympus")
