"""The on-call story: from the alert's link to a redrive that drains, in at most six clicks."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from reliability.models import DeadLetter, Job, Redrive
from reliability.work.redrive import advance
from tests.database import world
from tests.e2e.visits import SHOTS, Visit

KIND = "stripe.payment_intent.succeeded"
CLICKS_MAX = 6


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local(KIND, lambda event: None):
        yield


def test_from_the_alerts_link_to_a_running_redrive_in_six_clicks(visit: Visit) -> None:
    page, clicks = visit.open("/dead-letters/?source=stripe-live"), 1
    many = DeadLetter.objects.open().filter(kind=KIND).count()
    page.get_by_role("link", name="By cause").click()
    cause = page.get_by_role("row").filter(has_text=KIND)
    cause.get_by_role("button", name=f"Requeue {many}…").click()
    page.get_by_label("Kept with every letter").fill("handler fixed in 5a02b7d")
    page.get_by_role("button", name=f"Requeue {many}", exact=True).click()
    clicks += 3
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"requeue {many}")
    assert Redrive.objects.get().state == "running"
    assert clicks <= CLICKS_MAX
    _watch_it_drain(page, many)


def _watch_it_drain(page: Page, many: int) -> None:
    """Let the clock and the workers do their part; the open page follows by itself."""
    later = timezone.now()
    while Redrive.objects.get().state == "running":
        later += timedelta(seconds=10)
        advance(later)
        Job.objects.filter(state="ready", kind=KIND).update(state="running", token=1,
            lease_expires_at=later)  # fmt: skip
        Job.objects.filter(state="running").update(state="done", lease_expires_at=None)
    expect(page.locator("#progress")).to_contain_text(f"{many} of {many} settled")
    expect(page.locator("#progress")).to_contain_text("Done.")


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


@pytest.mark.parametrize("width", [1440, 390])
def test_causes_and_redrives_fit_their_screens(visit: Visit, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})
    page = visit.open("/dead-letters/causes/")
    _look(page, "causes", width)
    page.get_by_role("link", name="nobody").first.click()
    _look(page, "cause_note", width)
    visit.open(f"/dead-letters/?kind={KIND}&select=matching")
    _look(page, "select_matching", width)
    page.get_by_role("button", name="Requeue").click()
    _look(page, "redrive_confirm", width)
    page.get_by_label("Kept with every letter").fill("handler fixed")
    page.get_by_role("button", name="Requeue").last.click()
    expect(page.locator("#progress")).to_be_visible()
    _look(page, "redrive", width)
    visit.open("/redrives/")
    _look(page, "redrives", width)


def _look(page: Page, name: str, width: int) -> None:
    SHOTS.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=SHOTS / f"{name}.{width}.{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
