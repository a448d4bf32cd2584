"""Triage with the keyboard alone, and two operators over the same letters in two browsers."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from reliability.models import AuditEntry, DeadLetter, Job, Tenant
from tests.console import rows
from tests.e2e.visits import PASSWORD, Visit

TABS_MAX = 60


@pytest.fixture
def colleague(browser: Browser, served: str) -> Iterator[Visit]:
    """Return the browser of a second operator of the same tenant."""
    user: User = rows.member(Tenant.objects.get(slug="acme"), "operator", "m.keller")
    user.set_password(PASSWORD)
    user.save()
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    visit = Visit(context, served)
    visit.sign_in("m.keller")
    yield visit
    context.close()
    assert visit.complaints == []


def test_letters_are_searched_ticked_and_requeued_without_a_mouse(visit: Visit) -> None:
    page = visit.open("/dead-letters/?text=period_locked")
    notice = page.locator("[data-refresh]")
    expect(notice).to_have_text("Refreshes every 30 s")
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected on this page")).to_be_visible()
    expect(notice).to_have_text("Refresh paused while rows are ticked")
    page.keyboard.press("r")
    expect(page.locator(".say")).to_contain_text("2 letters were ticked. 2 would run")
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Requeue 2":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("Requeued 2.")).to_be_visible()
    assert "text=period_locked" in page.url
    assert Job.objects.filter(state="ready", round=2).count() == 2


def test_a_range_is_ticked_by_keyboard_and_the_table_stays_while_it_is(visit: Visit) -> None:
    page = visit.open("/dead-letters/")
    for key in ("j", "x", "j", "j", "Shift+X"):
        page.keyboard.press(key)
    expect(page.get_by_text("3 selected on this page")).to_be_visible()
    newest = page.locator("tbody tr").first.inner_text()
    rows.letter(DeadLetter.objects.latest("buried_at").source, "evt_arrived")
    page.evaluate(
        "htmx.trigger('#table', 'refresh'); htmx.ajax('GET', location.href, '#table')"
    )
    page.wait_for_timeout(300)
    assert page.locator("tbody tr").first.inner_text() == newest
    expect(page.get_by_text("3 selected on this page")).to_be_visible()


def test_the_table_refreshes_by_itself_while_nothing_is_ticked(visit: Visit) -> None:
    page = visit.page
    page.clock.install()
    visit.open("/dead-letters/")
    before = page.locator("#say").inner_text()
    rows.letter(DeadLetter.objects.latest("buried_at").source, "evt_arrived")
    with page.expect_response(lambda r: r.request.headers.get("hx-request") == "true"):
        page.clock.fast_forward(31_000)
    expect(page.locator("tbody")).to_contain_text("evt_arrived")
    assert page.locator("#say").inner_text() != before
    expect(page.locator("[data-all]")).to_be_visible()


def test_of_two_operators_on_one_preview_the_later_is_told_who_was_first(
    visit: Visit, colleague: Visit
) -> None:
    for one in (visit, colleague):
        page = one.open("/dead-letters/?text=period_locked")
        page.locator("tbody input[type=checkbox]").first.check()
        page.get_by_role("button", name="Requeue 1").click()
        expect(page.locator(".say")).to_contain_text("1 would run")
    colleague.page.get_by_role("button", name="Requeue 1").dblclick()
    expect(colleague.page.locator(".banner").first).to_be_visible()
    visit.page.get_by_role("button", name="Requeue 1").click()
    expect(visit.page.get_by_text("m.keller was first")).to_be_visible()
    assert AuditEntry.objects.filter(act="requeue").count() == 1
    assert Job.objects.filter(round=2).count() == 1
