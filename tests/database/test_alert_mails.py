"""Alert mails: each one once, by a real SMTP server, without anything of a customer's in it."""

from __future__ import annotations

import email
import email.policy
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage as Received
from typing import Any

import pytest
import time_machine
from aiosmtpd.controller import Controller
from django.conf import LazySettings
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from reliability.alerts.deliver import Delivered, deliver, wait_after
from reliability.alerts.evaluate import evaluate
from reliability.alerts.message import message_id
from reliability.alerts.shipped import ship_rules
from reliability.models import Alert, AlertDelivery, AlertRule, DeadLetter, Source
from tests.database.letters import a_source, a_tenant, close_letters, dead_letters

NIGHT = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ON_CALL = "on-call@acme.example"
BASE_URL = "https://reliability.acme.example"
OPENED = """\
40 dead letters open in stripe-live. The rule opens at 25, held for 5 min, and closes at 10.

See what is behind the number:
https://reliability.acme.example/in/acme/dead-letters/?source=stripe-live

Tenant         Acme
Rule           Open dead letters
Owner          N. Okafor, on call
What changed   40 of them came in the last hour
High since     Fri 2 Oct 2026 05:00 Europe/Amsterdam, 03:00 UTC
Counted        Fri 2 Oct 2026 05:05 Europe/Amsterdam, 03:05 UTC

Rules, alerts and their history:
https://reliability.acme.example/alerts/

Next reminder in 4 h while it stays open.
"""
RESOLVED = """\
Resolved: 10 dead letters open in stripe-live. The rule opens at 25, held for 5 min, and closes at 10.

See what is left:
https://reliability.acme.example/in/acme/dead-letters/?source=stripe-live

Tenant         Acme
Rule           Open dead letters
Owner          N. Okafor, on call
Peak           40
High since     Fri 2 Oct 2026 05:00 Europe/Amsterdam, 03:00 UTC
Opened         Fri 2 Oct 2026 05:05 Europe/Amsterdam, 03:05 UTC
Open for       2 h 31 min
Counted        Fri 2 Oct 2026 07:36 Europe/Amsterdam, 05:36 UTC

Rules, alerts and their history:
https://reliability.acme.example/alerts/

One mail when it opens, one when it resolves; in between only reminders.
"""


class Mailbox:
    """What a real SMTP server was handed."""

    def __init__(self) -> None:
        self.mails = list[Received]()
        self.answer = "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        if self.answer.startswith("250"):
            self.mails.append(
                email.message_from_bytes(envelope.content, policy=email.policy.default)
            )
        return self.answer

    def subjects(self) -> list[str]:
        return [str(found["Subject"]) for found in self.mails]


@pytest.fixture
def mailbox(settings: LazySettings) -> Iterator[Mailbox]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    yield box
    server.stop()


@pytest.fixture
def clock(settings: LazySettings) -> Iterator[time_machine.Traveller]:
    settings.RELIABILITY_BASE_URL = BASE_URL
    with time_machine.travel(NIGHT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    """Return a source whose tenant has the rule on open letters alone."""
    found = a_source(a_tenant(), zone="Europe/Amsterdam")
    ship_rules(found.tenant, [ON_CALL])
    AlertRule.objects.exclude(measure="open letters").delete()
    AlertRule.objects.update(owner="N. Okafor, on call")
    return found


def pass_the_hold(clock: time_machine.Traveller) -> None:
    """Evaluate at the start and at the end of the hold: the alert opens, its mail is owed."""
    evaluate("beat")
    clock.shift(5 * MINUTE)
    evaluate("beat")


def an_opened_alert(source: Source, clock: time_machine.Traveller) -> Alert:
    dead_letters(source, 40)
    pass_the_hold(clock)
    return Alert.objects.get(status="open", source=source)


def test_a_mail_server_gets_one_open_and_one_resolved_mail_and_nothing_of_a_customer(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    alert = an_opened_alert(source, clock)
    for _ in range(3):
        deliver()
        evaluate("beat")
    clock.shift(timedelta(hours=2, minutes=31))
    close_letters(source, 30)
    for _ in range(3):
        evaluate("beat")
        deliver()

    opened, resolved = mailbox.mails
    assert mailbox.subjects() == [
        "[Reliability] 40 dead letters open in stripe-live (over 25 for 5 min)",
        "[Reliability] Resolved: 10 dead letters open in stripe-live",
    ]
    assert text_of(opened) == OPENED
    assert text_of(resolved) == RESOLVED
    assert (opened["To"], opened["X-Reliability-Count"]) == (ON_CALL, "40")
    assert resolved["X-Reliability-Count"] == "10"
    assert opened["X-Reliability-Alert"] == str(alert.public_id)
    letter = DeadLetter.objects.select_related("job__key")[0]
    for said in ("4242424242424242", "jane.doe", "1999", "EUR", "evt_", letter.job.key.key):
        assert said not in opened.as_string() + resolved.as_string()


def text_of(received: Received) -> str:
    return str(received.get_content()).replace("\r\n", "\n").rstrip() + "\n"


def test_a_reminder_counts_itself(source: Source, clock: time_machine.Traveller) -> None:
    an_opened_alert(source, clock)
    dead_letters(source, 2)
    clock.shift(timedelta(hours=4))
    evaluate("beat")
    deliver()
    assert [sent.subject for sent in mail.outbox] == [
        "[Reliability] 40 dead letters open in stripe-live (over 25 for 5 min)",
        "[Reliability] Reminder 1: 42 dead letters open in stripe-live (over 25 for 5 min)",
    ]
    assert "Peak           42\n" in str(mail.outbox[1].body)


def test_a_process_that_dies_between_evaluating_and_delivering_loses_and_repeats_nothing(
    source: Source, clock: time_machine.Traveller
) -> None:
    an_opened_alert(source, clock)
    clock.shift(MINUTE)
    evaluate("beat")  # the next process; the first never came to deliver
    assert deliver() == Delivered(sent=1)
    assert deliver() == Delivered()
    assert len(mail.outbox) == 1


class DiesBeforeSending(BaseEmailBackend):
    def send_messages(self, _messages: Sequence[EmailMessage]) -> int:
        raise KeyboardInterrupt


def test_a_sender_that_died_is_followed_by_another_once_its_lease_is_over(
    source: Source, clock: time_machine.Traveller, settings: LazySettings
) -> None:
    working, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, f"{__name__}.DiesBeforeSending"
    alert = an_opened_alert(source, clock)
    with pytest.raises(KeyboardInterrupt):
        deliver()
    settings.EMAIL_BACKEND = working
    clock.shift(5 * MINUTE - timedelta(seconds=1))
    assert deliver() == Delivered()
    clock.shift(timedelta(seconds=1))
    assert deliver() == Delivered(sent=1)
    owed = AlertDelivery.objects.select_related("alert").get(alert=alert)
    assert mail.outbox[0].extra_headers["Message-ID"] == message_id(owed)


def test_a_repeat_after_a_crash_carries_the_same_id_and_no_other_mail_does(
    source: Source, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(emails=[ON_CALL, "lead@acme.example"])
    an_opened_alert(source, clock)
    deliver()
    # As if the process had died after sending and before marking.
    AlertDelivery.objects.update(status="pending", sent_at=None)
    clock.shift(5 * MINUTE)
    deliver()
    ids = [sent.extra_headers["Message-ID"] for sent in mail.outbox]
    assert (len(ids), ids[:2], len(set(ids))) == (4, ids[2:], 2)
    assert all(found.endswith("@reliability.acme.example>") for found in ids)


class CallsASecondDeliverer(BaseEmailBackend):
    """While a mail is on its way, somebody else looks for mails to send."""

    found = list[Delivered]()
    sent = list[str]()

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        self.sent.extend(message.to[0] for message in messages)
        self.found.append(deliver())
        return len(messages)


def test_two_deliverers_never_send_one_mail_twice(
    source: Source, clock: time_machine.Traveller, settings: LazySettings
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.CallsASecondDeliverer"
    an_opened_alert(source, clock)
    assert deliver() == Delivered(sent=1)
    assert CallsASecondDeliverer.sent == [ON_CALL]
    assert CallsASecondDeliverer.found == [Delivered()]


def test_a_server_that_refuses_is_asked_again_ever_later_and_the_error_is_kept(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    mailbox.answer = "451 Try later"
    an_opened_alert(source, clock)
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60, 60):
        assert deliver() == Delivered(put_off=1)
        clock.shift(minutes * MINUTE - timedelta(seconds=1))
        assert deliver() == Delivered()
        clock.shift(timedelta(seconds=1))
    assert deliver() == Delivered(given_up=1)
    clock.shift(timedelta(days=1))
    assert deliver() == Delivered()
    owed = AlertDelivery.objects.get()
    assert (owed.status, owed.tries) == ("failed", 10)
    assert "Try later" in owed.error


def test_a_server_that_comes_back_gets_the_mail_once(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    mailbox.answer = "451 Try later"
    an_opened_alert(source, clock)
    deliver()
    mailbox.answer = "250 OK"
    clock.shift(MINUTE)
    deliver()
    deliver()
    assert len(mailbox.mails) == 1
    assert AlertDelivery.objects.get().error == ""


def test_resolved_never_overtakes_opened(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    mailbox.answer = "451 Try later"
    an_opened_alert(source, clock)
    deliver()
    close_letters(source, 40)
    evaluate("beat")
    mailbox.answer = "250 OK"
    assert deliver() == Delivered()
    clock.shift(MINUTE)
    assert deliver() == Delivered(sent=2)
    assert ["Resolved" in subject for subject in mailbox.subjects()] == [False, True]


def test_the_wait_grows_to_an_hour_and_no_further() -> None:
    assert [wait_after(tries) // MINUTE for tries in (1, 2, 6, 7, 50)] == [1, 2, 32, 60, 60]


def test_an_address_gets_thirty_mails_an_hour_and_the_thirtieth_says_that_more_wait(
    source: Source, clock: time_machine.Traveller
) -> None:
    for number in range(31):
        dead_letters(a_source(source.tenant, f"source-{number}"), 25)
    AlertRule.objects.update(emails=[ON_CALL, "lead@acme.example"])
    pass_the_hold(clock)
    assert deliver() == Delivered(sent=60)
    to_on_call = [sent for sent in mail.outbox if sent.to == [ON_CALL]]
    assert len(to_on_call) == 30
    notice = "1 more mail to this address waits: at most 30 are sent in an hour."
    assert notice in str(to_on_call[29].body)
    clock.shift(timedelta(minutes=59))
    assert deliver() == Delivered()
    clock.shift(MINUTE)
    assert deliver() == Delivered(sent=2)


def test_mails_that_were_tried_keep_their_place_in_the_hour(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    mailbox.answer = "451 Try later"
    for number in range(31):
        dead_letters(a_source(source.tenant, f"source-{number}"), 25)
    pass_the_hold(clock)
    assert deliver() == Delivered(put_off=30)
    mailbox.answer = "250 OK"
    clock.shift(MINUTE)
    assert deliver() == Delivered(sent=30)


HOSTILE = "live\r\nBcc: thief@evil.example\r\n\r\nhttps://evil.example/login \u202e"


def test_names_can_forge_no_header_no_line_and_no_link(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    Source.objects.update(slug=HOSTILE)
    AlertRule.objects.update(name=HOSTILE, owner=HOSTILE)
    an_opened_alert(source, clock)
    assert deliver() == Delivered(sent=1)
    [received] = mailbox.mails
    assert received["Bcc"] is None
    assert received["Subject"] == (
        "[Reliability] 40 dead letters open in live Bcc: thief@evil.example "
        "https evil.example/login (over 25 for 5 min)"
    )
    lines = text_of(received).splitlines()
    assert not [line for line in lines if line.startswith("Bcc")]
    links = [line for line in lines if "://" in line]
    assert [link.startswith(f"{BASE_URL}/") for link in links] == [True, True]
    assert "\u202e" not in text_of(received)


def test_an_address_that_cannot_be_one_is_given_up_and_stops_no_other(
    source: Source, mailbox: Mailbox, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(emails=["x@acme.example\nBcc: thief@evil.example", ON_CALL])
    an_opened_alert(source, clock)
    assert deliver() == Delivered(sent=1, put_off=1)
    assert [received["To"] for received in mailbox.mails] == [ON_CALL]
