"""Policies, destinations and health fit every screen, are accessible, and need no script."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, expect

from reliability import handlers
from reliability.handlers import DedupeWindow, Event, ProviderHeader
from reliability.models import Destination, KindPause, Source
from reliability.policy import Backoff
from tests.console import rows
from tests.e2e.visits import SHOTS, Visit

PAGES = {
    "policies": "/policies/",
    "kind": "/policies/kind/?kind=charge.card",
    "limits": "/policies/limits/",
    "destinations": "/destinations/",
    "destination": "/destinations/{destination}/",
    "health": "/health/",
}
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def _nothing(event: Event) -> None:
    return None


@pytest.fixture(autouse=True)
def _kinds() -> Iterator[None]:
    hour = timedelta(hours=1)
    policy = Backoff(first=timedelta(seconds=1), cap=hour, attempts=6)
    handlers.handler("charge.card", sink=ProviderHeader(window=24 * hour), policy=policy)(
        _nothing
    )
    sink = DedupeWindow(window=hour, record="before")
    handlers.handler("mail.receipt", sink=sink, policy=policy)(_nothing)
    yield
    handlers.unregister("charge.card")
    handlers.unregister("mail.receipt")


@pytest.fixture
def destination(served: str) -> Destination:
    return rows.destination(Source.objects.get(slug="stripe-live"))


@pytest.mark.parametrize("width", [1440, 390])
def test_the_pages_fit_their_screen_and_axe_finds_nothing(
    visit: Visit, destination: Destination, width: int
) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})
    SHOTS.mkdir(exist_ok=True)
    for name, path in PAGES.items():
        page = visit.open(path.format(destination=destination.public_id))
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=SHOTS / f"{name}.{width}.{scheme}.png", full_page=True)
            found = Axe().run(page, options=RULES)
            assert found.violations_count == 0, f"{name}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_a_kind_is_paused_and_resumed_without_a_script(
    browser: Browser, served: str, destination: Destination
) -> None:
    plain = Visit(browser.new_context(java_script_enabled=False), served)
    plain.sign_in("n.okafor")
    page = plain.open(PAGES["kind"])
    page.get_by_text("Pause charge.card…").click()
    page.get_by_label("Reason").fill("the provider is down")
    page.get_by_role("button", name="Pause charge.card").click()
    expect(page.get_by_text("charge.card is paused")).to_be_visible()
    assert KindPause.objects.get().reason == "the provider is down"
    page.get_by_text("Resume charge.card…").click()
    page.get_by_label("Reason").fill("it is back")
    page.get_by_role("button", name="Resume charge.card").click()
    expect(page.get_by_text("charge.card is not paused")).to_be_visible()
    assert not KindPause.objects.exists()
    plain.context.close()
