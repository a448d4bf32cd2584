"""What an operator does in a real browser, with scripts, without them, and by keyboard alone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from reliability.models import AuditEntry, DeadLetter, Job, Source
from tests.console import rows
from tests.e2e.visits import SHOTS, Visit


@pytest.fixture
def plain(browser: Browser, served: str) -> Iterator[Visit]:
    """Return a signed-in browser that runs no script."""
    context = browser.new_context(java_script_enabled=False)
    visit = Visit(context, served)
    visit.sign_in("n.okafor")
    yield visit
    context.close()


def test_a_link_from_an_alert_leads_to_its_letters_and_they_are_requeued(visit: Visit) -> None:
    page = visit.open("/alerts/")
    page.get_by_role("link", name="stripe-live").first.click()
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()
    expect(page.locator(".say")).to_contain_text("30 letters from stripe-live open")
    page.locator("[data-all]").check()
    expect(page.get_by_text("30 selected on this page")).to_be_visible()
    page.screenshot(path=SHOTS / "dead_letters_ticked.1440.light.png")
    page.get_by_role("button", name="Requeue 30").click()
    expect(page.locator(".say")).to_contain_text("30 letters were ticked. 30 would run")
    page.screenshot(path=SHOTS / "confirm.1440.light.png")
    page.get_by_label("Kept with every letter").fill("handler fixed in 5a02b7d")
    page.get_by_role("button", name="Requeue 30").click()
    expect(page.get_by_text("Requeued 30.")).to_be_visible()
    assert "source=stripe-live" in page.url
    assert DeadLetter.objects.open().count() == 0
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.facts["count"]) == ("requeue", 30)


def test_one_letter_is_requeued_undone_discarded_and_restored(visit: Visit) -> None:
    letter = DeadLetter.objects.latest("buried_at")
    page = visit.open(f"/dead-letters/{letter.public_id}/")
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_text(re.compile(r"Starts in \d+ s\."))).to_be_visible()
    page.screenshot(path=SHOTS / "letter_requeued.1440.light.png")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Requeue")).to_be_visible()
    page.get_by_role("button", name="Discard…").click()
    page.get_by_label("Reason", exact=True).fill("booked by hand, FIN-208")
    page.screenshot(path=SHOTS / "letter_discard.1440.light.png")
    page.get_by_role("button", name="Discard 1").click()
    expect(page.get_by_text("Reason: booked by hand, FIN-208")).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("button", name="Requeue")).to_be_visible()
    acts = list(AuditEntry.objects.order_by("number").values_list("act", flat=True))
    assert acts == ["requeue", "undo requeue", "discard", "restore"]


def test_letters_are_triaged_by_keyboard_alone(visit: Visit) -> None:
    page = visit.open("/dead-letters/")
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected on this page")).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator(".say")).to_contain_text("2 letters were ticked")
    page.get_by_role("button", name="Requeue 2").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Requeued 2.")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("d")
    page.get_by_label("Kept with every letter").fill("test data")
    page.get_by_role("button", name="Discard 1").click()
    expect(page.get_by_text("Discarded 1.")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("evt_nowhere")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Never seen here.")).to_be_visible()


def test_everything_works_without_scripts(plain: Visit) -> None:
    page = plain.open("/dead-letters/")
    page.get_by_label("Outcome").select_option("unknown")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Active filters")).to_contain_text("Unknown")
    page.locator("tbody input[type=checkbox]").first.check()
    page.get_by_role("button", name="Requeue").click()
    page.get_by_role("button", name="Requeue 1").click()
    expect(page.get_by_text("Requeued 1.")).to_be_visible()
    assert "outcome=unknown" in page.url
    page.locator("tbody th a").first.click()
    page.get_by_role("button", name="Discard…").click()
    page.get_by_label("Reason", exact=True).fill("test data")
    page.get_by_role("button", name="Discard 1").click()
    expect(page.get_by_text("Reason: test data")).to_be_visible()
    assert Job.objects.filter(state="ready").count() == 1
    assert Job.objects.filter(state="discarded").count() == 1


def test_of_two_tabs_the_second_is_told_who_was_first(visit: Visit) -> None:
    letter = DeadLetter.objects.latest("buried_at")
    first = visit.open(f"/dead-letters/{letter.public_id}/")
    second = visit.context.new_page()
    visit.listen(second)
    second.goto(first.url)
    first.get_by_role("button", name="Requeue").click()
    expect(first.get_by_text("Starts in")).to_be_visible()
    second.get_by_role("button", name="Requeue").click()
    expect(second.get_by_text("n.okafor was first")).to_be_visible()
    assert AuditEntry.objects.count() == 1


def test_a_double_click_and_the_way_back_requeue_once(visit: Visit) -> None:
    letter = DeadLetter.objects.latest("buried_at")
    page = visit.open(f"/dead-letters/{letter.public_id}/")
    page.get_by_role("button", name="Requeue").dblclick()
    expect(page.get_by_text("Starts in")).to_be_visible()
    page.go_back()
    # The page is not shown from memory: what is on it now is what holds now.
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    expect(page.get_by_role("button", name="Requeue")).to_have_count(0)
    assert AuditEntry.objects.count() == 1
    assert Job.objects.filter(round=2).count() == 1


def test_a_stale_list_requeues_only_what_is_still_a_dead_letter(visit: Visit) -> None:
    page = visit.open("/dead-letters/?text=period_locked")
    boxes = page.locator("tbody input[type=checkbox]")
    boxes.nth(0).check()
    boxes.nth(1).check()
    elsewhere = visit.context.new_page()
    visit.listen(elsewhere)
    elsewhere.goto(visit.base + (page.locator("tbody th a").first.get_attribute("href") or ""))
    elsewhere.get_by_role("button", name="Requeue").click()
    expect(elsewhere.get_by_text("Starts in")).to_be_visible()
    page.get_by_role("button", name="Requeue 2").click()
    expect(page.locator(".say")).to_contain_text("2 letters were ticked. 1 would run")
    page.get_by_role("button", name="Requeue 1").click()
    expect(page.get_by_text("Requeued 1.")).to_be_visible()
    counts = [entry.facts["count"] for entry in AuditEntry.objects.filter(act="requeue")]
    assert counts == [1, 1]
    assert Job.objects.filter(round=2).count() == 2


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'-alert(3)-'",
    "</pre></title><svg/onload=alert(4)>",
    '<a href="javascript:alert(5)">x</a><iframe srcdoc="<script>alert(6)</script>">',
    "<style>body{display:none}</style><meta http-equiv=refresh content=0>",
]


def test_hostile_text_runs_nothing_and_asks_nothing_of_the_network(visit: Visit) -> None:
    source = DeadLetter.objects.latest("buried_at").source
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    for text in HOSTILE:
        _meet(visit, source, text)
    assert all(url.startswith(visit.base) for url in asked)


def _meet(visit: Visit, source: Source, text: str) -> None:
    letter = rows.letter(
        source, text, error_type=text, message=text, reason=text,
        claimed={"kind": text, "raw": text.encode()},
    )  # fmt: skip
    for address in ("/dead-letters/", f"/dead-letters/{letter.public_id}/", "/jobs/"):
        page = visit.open(address)
        assert text in page.locator("main").inner_text()
        assert page.locator("main script, main iframe, main style, main img").count() == 0
    visit.open(f"/dead-letters/{letter.public_id}/")
    assert visit.page.locator("#payload").inner_text() == text


def test_an_overview_refreshes_itself_without_complaint(visit: Visit, settings: Any) -> None:
    page = visit.open("/")
    with page.expect_response(lambda r: r.request.headers.get("hx-request") == "true") as poll:
        page.evaluate(
            "htmx.ajax('GET', '/', {target: '#layers', select: '#layers', swap: 'outerHTML'})"
        )
    assert poll.value.ok
    expect(page.locator("#layers")).to_have_count(1)
