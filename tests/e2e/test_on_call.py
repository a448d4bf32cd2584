"""The on-call story with real workers: a mail, six clicks, a redrive that drains, a second mail."""

import email
import email.policy
import json
import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.db import connection
from playwright.sync_api import Browser, Locator, Page, expect

from reliability.alerts.shipped import ship_rules
from reliability.embedded.place import free_port
from reliability.embedded.stack import Stack
from reliability.models import AlertRule, DeadLetter, Redrive, Source
from tests.console import rows
from tests.database import senders, world
from tests.e2e.visits import PASSWORD, Visit

pytestmark = pytest.mark.timeout(240)

LETTERS = 30
CLOSED = "TEST_LEDGER_CLOSED"  # as in ledger.py, which would register its handler here too
CLICKS_MAX = 6


class Mailbox:
    """What a real SMTP server was handed."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append(mail)
        return "250 OK"

    def about(self, words: str) -> EmailMessage | None:
        return next((mail for mail in self.mails if words in mail["Subject"]), None)


@dataclass
class Clicks:
    """A person's clicks, counted; a link in a mail is the first of them."""

    page: Page
    made: list[str] = field(default_factory=list)

    def open(self, link: str) -> None:
        self.made.append(link)
        self.page.goto(link)

    def on(self, what: Locator) -> None:
        self.made.append(what.inner_text())
        what.click()


@dataclass(frozen=True)
class Deployment:
    """A running stack: real workers, beat and web over the tests' database."""

    stack: Stack
    mailbox: Mailbox
    closed: Path
    """While this file exists, the handler fails."""
    source: Source


@pytest.fixture
def live(transactional_db: None, tmp_path: Path) -> Iterator[Deployment]:
    source = world.source()
    ship_rules(source.tenant, ["on-call@acme.example"])
    AlertRule.objects.update(hold_seconds=1)
    user = rows.member(source.tenant, "operator", "n.okafor")
    user.set_password(PASSWORD)
    user.save()
    closed, mailbox = tmp_path / "closed", Mailbox()
    closed.touch()
    server = Controller(mailbox, hostname="127.0.0.1", port=free_port(0))
    server.start()
    stack = Stack(tmp_path, environment=surroundings(closed, server.port), workers=1)
    try:
        stack.start()
        yield Deployment(stack, mailbox, closed, source)
    finally:
        stack.stop()
        server.stop()


def surroundings(closed: Path, port: int) -> dict[str, str]:
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.e2e.live_settings",
        "TEST_DATABASE": connection.settings_dict["NAME"],
        "RELIABILITY_PACE": "quick",
        "RELIABILITY_HANDLERS": "tests.e2e.ledger",
        CLOSED: str(closed),
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
    }


def test_from_the_alerts_mail_to_a_redrive_that_drains_in_six_clicks(
    browser: Browser, live: Deployment
) -> None:
    visit = Visit(browser.new_context(viewport={"width": 1440, "height": 900}), live.stack.url)
    visit.sign_in("n.okafor")
    deliver(live)
    opened = wait_for(lambda: live.mailbox.about(f"{LETTERS} dead letters open"))
    live.closed.unlink()
    clicks = Clicks(visit.page)
    start_redrive(clicks, link_in(opened))
    assert Redrive.objects.get().state == "running"
    assert len(clicks.made) <= CLICKS_MAX, clicks.made
    watch_it_drain(visit.page)
    assert not DeadLetter.objects.open().exists()
    resolved = wait_for(lambda: live.mailbox.about("Resolved: "))
    assert f"Peak           {LETTERS}" in resolved.get_content()
    assert len(live.mailbox.mails) == 2
    visit.context.close()
    assert visit.complaints == []


def deliver(live: Deployment) -> None:
    """Have the provider deliver charges, which the workers then bury."""

    def post(number: int) -> int:
        body = json.dumps({"id": f"evt_{number}", "type": "charge.succeeded"}).encode()
        url = f"{live.stack.url}/hooks/{live.source.endpoint_token}/"
        asked = urllib.request.Request(url, body, senders.sign("stripe", body))  # noqa: S310 - our own URL
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - likewise
            return int(answer.status)

    with ThreadPoolExecutor(4) as provider:
        assert set(provider.map(post, range(LETTERS))) == {200}


def start_redrive(clicks: Clicks, link: str) -> None:
    page = clicks.page
    clicks.open(link)
    expect(page.locator(".say")).to_contain_text(f"{LETTERS} letters from stripe-live open")
    clicks.on(page.get_by_role("link", name="By cause"))
    expect(page.locator(".say")).to_contain_text("1 cause")
    cause = page.get_by_role("row").filter(has_text="LedgerClosed")
    clicks.on(cause.get_by_role("button", name=f"Requeue {LETTERS}…"))
    page.get_by_label("Kept with every letter").fill("October is open again, FIN-208")
    clicks.on(page.get_by_role("button", name=f"Requeue {LETTERS}", exact=True))
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"requeue {LETTERS}")


def watch_it_drain(page: Page) -> None:
    """See the open page follow the workers by itself, up to the end."""
    page.evaluate("window.loadedOnce = true")
    seen = set()
    until = monotonic() + 90
    while "Done." not in (said := page.locator("#progress .say").inner_text()):
        seen.add(said.partition(" settled")[0])
        assert monotonic() < until, said
        page.wait_for_timeout(500)
    assert len(seen) > 2, seen
    assert re.match(f"{LETTERS} of {LETTERS} settled, 0 failed again", said)
    assert page.evaluate("window.loadedOnce")


def link_in(mail: EmailMessage) -> str:
    (link,) = re.findall(r"http\S+/dead-letters/\S*", mail.get_content())
    return str(link)


def wait_for(look: Callable[[], EmailMessage | None]) -> EmailMessage:
    until = monotonic() + 90
    while not (found := look()):
        assert monotonic() < until
        sleep(0.2)
    return found
