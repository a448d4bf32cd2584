"""Alerts and silences fit every screen, are accessible, and need no script."""

from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from django.utils import timezone
from playwright.sync_api import Browser, expect

from reliability.models import Alert, AlertDelivery, Silence, Source
from tests.console import rows
from tests.e2e.visits import Visit

PAGES = {"alerts": "/alerts/", "silences": "/alerts/silences/"}
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


@pytest.fixture
def silent(served: str) -> Source:
    """Return a source whose alert is silenced, with one silence over and one test sent."""
    source = Source.objects.get(slug="stripe-live")
    now = timezone.now()
    rows.silence(source)
    rows.silence(source, reason="last week", ended_at=now, ended_by="ines")
    Alert.objects.update(
        withheld="silenced", withheld_until=now + timedelta(hours=1), told_at=None
    )
    AlertDelivery.objects.create(
        tenant=source.tenant, occasion="test 1", email="on-call@acme.example", value=0,
        counted_at=now, due_at=now, status="failed", error="ConnectionRefusedError", tries=10,
    )  # fmt: skip
    return source


@pytest.mark.parametrize("width", [1440, 390])
def test_the_pages_of_alerts_fit_their_screen_and_axe_finds_nothing(
    visit: Visit, silent: Source, width: int
) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})
    for name, path in PAGES.items():
        page = visit.open(path)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page, options=RULES).response["violations"]
            assert found == [], f"{name} {width} {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_a_silence_is_planned_and_ended_without_a_script(
    browser: Browser, visit: Visit, served: str
) -> None:
    state = visit.context.storage_state()
    context = browser.new_context(java_script_enabled=False, storage_state=state)
    page = context.new_page()
    page.goto(f"{served}/alerts/")
    page.get_by_role("link", name="Silences").click()
    until = timezone.now() + timedelta(hours=2)
    page.get_by_label("Until (UTC)").fill(f"{until:%Y-%m-%dT%H:%M}")
    page.get_by_label("Reason").fill("the ledger is moved")
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.get_by_text("1 silence is in force or planned.")).to_be_visible()
    page.get_by_role("button", name="End now").click()
    expect(page.get_by_text("Nothing is silenced.")).to_be_visible()
    context.close()
    assert Silence.objects.get().ended_by
