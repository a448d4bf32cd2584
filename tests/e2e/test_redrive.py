"""A redrive is started, watched and paused without scripts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.database import world
from tests.e2e.visits import Visit

KIND = "stripe.payment_intent.succeeded"


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local(KIND, lambda event: None):
        yield


def test_the_whole_way_works_without_scripts(browser: Browser, served: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    visit = Visit(context, served)
    visit.sign_in("n.okafor")
    page = visit.open(f"/dead-letters/?kind={KIND}")
    page.get_by_role("checkbox").first.check()
    page.get_by_role("link", name="Select all").click()
    page.get_by_role("button", name="Requeue").click()
    page.get_by_label("Kept with every letter").fill("handler fixed")
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator("#progress")).to_contain_text("settled")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    context.close()
