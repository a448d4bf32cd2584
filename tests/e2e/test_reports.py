"""Finance in a real browser: a green day signed in two clicks, a red day cleared and signed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, expect

from reliability.alerts.morning import morning
from reliability.claim.accept import Asked, claim
from reliability.handlers import MappedOperation
from reliability.models import AuditEntry, Discrepancy, Job, Report, Source, Tenant
from reliability.work.drain import drain
from tests.console import rows
from tests.database import world
from tests.database.days import MAPPED, Row, a_file, give, operation, report
from tests.e2e.visits import PASSWORD, SHOTS, Visit

KIND = "stripe.charge.succeeded"
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date()
NOON = datetime.combine(YESTERDAY, time(12), UTC)


@dataclass
class Clicks:
    """A person's clicks, counted."""

    made: list[str] = field(default_factory=list)

    def on(self, what: Locator) -> None:
        self.made.append(what.inner_text() or what.get_attribute("title") or "cell")
        what.click()


@pytest.fixture
def shop(served: str) -> Source:
    """Return a source whose statement carries its number of rows."""
    acme = Tenant.objects.get(slug="acme")
    made = world.source("shop", of="acme")
    Source.objects.filter(pk=made.pk).update(
        zone="UTC", statement_format="mapped-csv", statement_options=MAPPED,
        statement_kinds=["charge", "refund"], created_at=NOON,
    )  # fmt: skip
    made.refresh_from_db()
    approver = rows.member(acme, "approver", "m.keller")
    approver.set_password(PASSWORD)
    approver.save()
    return made


@pytest.fixture
def finance(browser: Browser, served: str, shop: Source) -> Iterator[Visit]:
    """Return the approver's signed-in browser; no page may have complained at the end."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    visit = Visit(context, served)
    visit.sign_in("m.keller")
    yield visit
    context.close()
    assert visit.complaints == []


def row(reference: str, amount: str = "10.00", **more: Any) -> Row:
    return Row(reference, amount, occurred=NOON.isoformat(), **more)


def ours(source: Source, reference: str, amount_minor: int = 1000, **more: Any) -> Job:
    return operation(source, reference, amount_minor, occurred_at=NOON, **more)


def the_cell(page: Any) -> Locator:
    found: Locator = page.get_by_role("row", name="shop").locator("a.day")
    return found


def mailed(source: Source, settings: Any) -> str:
    """Return the path that this morning's mail leads to."""
    settings.RELIABILITY_BASE_URL = "https://reliability.acme.example"
    body = morning(source.tenant, datetime.now(UTC)).body
    [found] = re.findall(
        r"^https://reliability\.acme\.example(/\S+reports/)$", body, re.MULTILINE
    )
    return str(found)


@pytest.mark.parametrize("start", ["mail", "overview"])
def test_a_green_day_is_signed_off_in_two_clicks_from_the_mail_s_link_and_from_the_overview(
    finance: Visit, shop: Source, settings: Any, start: str
) -> None:
    ours(shop, "ch_1")
    report(shop, row("ch_1"), day=YESTERDAY)
    page, clicks = finance.open(mailed(shop, settings) if start == "mail" else "/"), Clicks()
    if start == "mail":
        page.screenshot(path=SHOTS / "reports_index.1440.light.png", full_page=True)
        clicks.on(the_cell(page))
    else:
        clicks.on(page.locator("#layers").get_by_role("link", name="shop", exact=True))
    expect(page.locator(".say")).to_contain_text("Complete. 1 of 1 agree. Nothing is open.")
    page.screenshot(path=SHOTS / "report_green.1440.light.png", full_page=True)
    clicks.on(page.get_by_role("button", name="Sign off"))
    expect(page.get_by_text("m.keller, ").first).to_be_visible()
    assert len(clicks.made) == 2
    assert Report.objects.get(source=shop).signed_by == "m.keller"


def picture(visit: Visit, url: str, name: str) -> None:
    """Take a page from its top, beside the one that is being clicked on."""
    page = visit.context.new_page()
    page.goto(url)
    page.screenshot(path=SHOTS / name, full_page=True)
    page.close()


def test_a_red_day_of_three_is_cleared_and_signed_in_twelve_clicks(
    finance: Visit, shop: Source
) -> None:
    ours(shop, "ch_2", 950)
    ours(shop, "ch_9", 3500)
    ours(shop, "ch_5", 120_000)
    report(
        shop, row("ch_1", "249.00"), row("ch_2", "10.00"), row("ch_5", "1200.00"),
        row("", "-12.50", kind="fee", id="f"), day=YESTERDAY,
    )  # fmt: skip
    page, clicks = finance.open("/reports/"), Clicks()
    clicks.on(the_cell(page))
    expect(page.locator(".say")).to_contain_text("3 still open")
    with world.local(KIND, lambda event: None):
        picture(finance, page.url.partition("?")[0], "report_red.1440.light.png")
        clicks.on(page.get_by_role("button", name="Recover"))
        expect(page.get_by_text("is being recovered.")).to_be_visible()
        assert drain("local") == 1
    for verdict, words, button in (
        ("amount differs", "tip added after capture, booked by the shop", "Resolve"),
        ("unexpected", "test card of the shop monitor", "Ignore"),
    ):
        line = page.get_by_role("row").filter(has_text=verdict).filter(has_text="D-")
        clicks.on(line.get_by_role("link", name="Decide…"))
        form = page.locator("form.box").filter(has=page.get_by_role("button", name=button))
        form.locator("input[name=reason]").fill(words)
        clicks.on(form.get_by_role("button", name=button))
    clicks.on(page.get_by_role("button", name="Compare again"))
    expect(page.locator(".say")).to_contain_text("Nothing is open")
    clicks.on(page.get_by_role("button", name="Sign off"))
    expect(page.get_by_text("m.keller, ").first).to_be_visible()
    assert len(clicks.made) <= 12, clicks.made
    assert set(Discrepancy.objects.values_list("status", flat=True)) == {
        "recovered", "resolved", "ignored",
    }  # fmt: skip
    acts = AuditEntry.objects.order_by("number").values_list("act", flat=True)
    assert [act for act in acts if act != "close"] == [
        "recover", "resolve", "ignore", "sign",
    ]  # fmt: skip


def test_what_a_day_misses_is_recovered_in_one_act(finance: Visit, shop: Source) -> None:
    ours(shop, "ch_dead", state="dead")
    made = report(
        shop, row("ch_1", "249.00"), row("ch_2", "61.00"), row("ch_dead", "18.40"),
        day=YESTERDAY,
    )  # fmt: skip
    with world.local(KIND, lambda event: None):
        page = finance.open(f"/reports/{made.public_id}/")
        page.get_by_role("link", name="Recover 2 missing…").click()
        expect(page.locator(".say")).to_contain_text("2 would be recovered: €310.00.")
        expect(page.get_by_role("row", name="ch_dead")).to_contain_text("dead letter")
        page.get_by_label("Kept in the audit trail").fill("the provider was down")
        page.screenshot(path=SHOTS / "recover_missing.1440.light.png", full_page=True)
        page.get_by_role("button", name="Recover 2").click()
        expect(page.get_by_text("2 are being recovered.")).to_be_visible()
        expect(page.get_by_role("link", name="missing…")).to_have_count(0)
        assert drain("local") == 2
    assert Job.objects.filter(source=shop, state="done").count() == 2


EVERY_KIND = {
    "ch_never": ("missing", "Never received"),
    "ch_dead": ("missing", "In dead letter"),
    "ch_retry": ("missing", "Still retrying"),
    "ch_ready": ("missing", "Received, not worked yet"),
    "ch_gone": ("missing", "Its dead letter was discarded"),
    "ch_amount": ("amount differs", ""),
    "ch_decimals": ("amount differs", "€1.000"),
    "ch_currency": ("currency differs", "$10.00"),
    "ch_twice": ("listed again", ""),
    "ch_ours": ("unexpected", ""),
    "po_1": ("ambiguous", "Several of theirs and several of ours"),
}
TOGETHER = {"grouped_classes": ["payout"], "tolerance_minor": {"charge": 2},
            "grace_hours": {"refund": 48}}  # fmt: skip


def a_day_of_every_kind(shop: Source) -> Report:
    """Plant one of each; refunds are waited for by two days, so they are early or in transit."""
    shop.statement_options = MAPPED | TOGETHER
    shop.statement_kinds = ["charge", "refund", "payout"]
    shop.save()
    states = {
        "ch_dead": "dead",
        "ch_retry": "retrying",
        "ch_ready": "ready",
        "ch_gone": "discarded",
    }
    for reference, state in states.items():
        ours(shop, reference, 2400, state=state)
    for reference in ("ch_1", "ch_near", "ch_twice", "ch_ours"):
        ours(shop, reference)
    ours(shop, "ch_amount", 950)
    ours(shop, "ch_decimals", exponent=3)
    ours(shop, "ch_currency", currency="USD")
    operation(shop, "ch_before", occurred_at=NOON - timedelta(days=1))
    ours(shop, "re_ours", operation_class="refund")
    for part in ("po_a", "po_b"):
        ours(shop, part, 500, operation_class="payout", batch="po_1")
    return report(
        shop, row("ch_1"), row("ch_near", "10.02"), row("ch_before"), row("ch_never", "249.00"),
        *(row(reference, "24.00") for reference in states),
        row("ch_amount"), row("ch_decimals"), row("ch_currency"),
        row("ch_twice"), row("ch_twice", id="again"), row("re_theirs", "-7.00", kind="refund"),
        row("po_1", "-4.00", kind="payout", id="p1"), row("po_1", "-6.00", kind="payout", id="p2"),
        row("", "-12.50", kind="fee", id="f"), day=YESTERDAY,
    )  # fmt: skip


def test_every_kind_of_difference_is_found_on_the_page_with_its_cause(
    finance: Visit, shop: Source
) -> None:
    made = a_day_of_every_kind(shop)
    page = finance.open(f"/reports/{made.public_id}/")
    table = page.locator("#table tbody tr")
    expect(table).to_have_count(len(EVERY_KIND))
    for reference, (verdict, cause) in EVERY_KIND.items():
        one = table.filter(has_text=reference)
        expect(one.get_by_role("rowheader")).to_contain_text(verdict)
        expect(one).to_contain_text(cause)
    for step in ("Early", "In transit", "Out of scope", "within the tolerance"):
        expect(page.locator(".bridge").first).to_contain_text(step)
    expect(page.locator("tfoot .badge").first).to_contain_text("explained to the last unit")
    page.screenshot(path=SHOTS / "report_every_kind.1440.light.png", full_page=True)
    for words in ("missing here 5", "amount differs 2", "unexpected 1"):
        page.locator(".chips").get_by_role("link", name=words).click()
        expect(table).to_have_count(int(words[-1]))
    page.goto(f"{finance.base}/discrepancies/")
    expect(page.locator("tbody tr")).to_have_count(len(EVERY_KIND))
    expect(page.get_by_role("row").filter(has_text="ch_amount")).to_contain_text("€0.50 lower")
    page.screenshot(path=SHOTS / "inbox.1440.light.png", full_page=True)
    page.goto(f"{finance.base}/reports/month/?month={YESTERDAY:%Y-%m}")
    expect(page.get_by_role("row", name="shop")).to_contain_text(str(len(EVERY_KIND)))
    page.screenshot(path=SHOTS / "month.1440.light.png", full_page=True)


def test_what_was_recovered_shows_as_matched_and_its_late_webhook_is_absorbed(
    finance: Visit, shop: Source
) -> None:
    made = report(shop, row("ch_1"), day=YESTERDAY)
    page = finance.open(f"/reports/{made.public_id}/")
    expect(page.locator("#differences")).to_be_visible()
    expect(page.get_by_text("Never received")).to_be_visible()
    with world.local(KIND, lambda event: None):
        page.get_by_role("button", name="Recover").click()
        expect(page.get_by_text("is being recovered.")).to_be_visible()
        drain("local")
    page.get_by_role("button", name="Compare again").click()
    expect(page.locator(".say")).to_contain_text("1 of 1 agree. Nothing is open.")
    mapped = MappedOperation(
        operation_class="charge",
        reference="ch_1",
        amount_minor=1000,
        currency="EUR",
        exponent=2,
    )
    late = Asked(key="evt_late", kind=KIND, body=b"{}", operation=mapped)
    [fate] = claim(shop, [late])
    assert (fate.verdict, Job.objects.filter(source=shop).count()) == ("absorbed", 1)
    page.get_by_label("Find a key").fill("evt_late")
    page.keyboard.press("Enter")
    expect(page.get_by_text("recovered:ch_1").first).to_be_visible()


def test_a_statement_is_uploaded_and_a_cut_one_gives_no_verdict(
    finance: Visit, shop: Source, tmp_path: Path
) -> None:
    (tmp_path / "cut.csv").write_bytes(a_file(row("ch_1"), declared=2))
    page = finance.open("/reports/")
    page.get_by_role("button", name="Upload statement…").click()
    page.get_by_label("Source", exact=True).select_option("shop")
    page.get_by_label("Local day").fill(str(YESTERDAY))
    page.get_by_label("File, up to").set_input_files(tmp_path / "cut.csv")
    page.screenshot(path=SHOTS / "reports_upload.1440.light.png")
    page.get_by_role("button", name="Upload and compare").click()
    expect(page.locator(".say")).to_contain_text(
        "Incomplete, so missing and unexpected are withheld"
    )
    expect(page.get_by_text("2 rows declared, 1 read")).to_be_visible()
    expect(page.get_by_role("button", name="Recover")).to_have_count(0)
    page.screenshot(path=SHOTS / "report_incomplete.1440.light.png", full_page=True)
    assert Discrepancy.objects.filter(source=shop).count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_fit_a_telephone_and_the_dark(
    browser: Browser, served: str, shop: Source, theme: Any
) -> None:
    ours(shop, "ch_2", 950)
    made = report(shop, row("ch_1", "249.00"), row("ch_2"), day=YESTERDAY)
    give(shop, a_file(row("ch_1"), row("ch_3")), YESTERDAY)
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=theme)
    visit = Visit(context, served)
    visit.sign_in("m.keller")
    one = Discrepancy.objects.filter(source=shop).earliest("pk")
    for name, address in (
        ("reports_index", "/reports/"),
        ("report", f"/reports/{made.public_id}/"),
        ("discrepancies", "/discrepancies/"),
        ("discrepancy", f"/discrepancies/{one.public_id}/"),
    ):
        page = visit.open(address)
        page.screenshot(path=SHOTS / f"{name}.390.{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    context.close()
    assert visit.complaints == []
    assert User.objects.filter(username="m.keller").exists()
