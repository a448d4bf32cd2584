"""A kind is paused and resumed without a script."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from reliability.models import KindPause
from tests.database import world
from tests.e2e.visits import Visit

KIND = "/policies/kind/?kind=charge.card"


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local("charge.card", lambda event: None):
        yield


def test_a_kind_is_paused_and_resumed_without_a_script(browser: Browser, served: str) -> None:
    plain = Visit(browser.new_context(java_script_enabled=False), served)
    plain.sign_in("n.okafor")
    page = plain.open(KIND)
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
