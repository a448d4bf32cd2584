"""A silence is planned and ended without a script."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Browser, expect

from reliability.models import Silence
from tests.e2e.visits import Visit


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
