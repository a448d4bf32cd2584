"""Every page, wide and narrow, light and dark: axe finds nothing, nothing complains or overflows."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from django.contrib.auth.models import Group
from django.db import OperationalError
from playwright.sync_api import Page, expect

from reliability.console.searching import TooSlow
from reliability.models import Membership, Tenant
from tests.database import world
from tests.e2e.every import kinds, one_of_each, pages
from tests.e2e.visits import SHOTS, Visit

pytestmark = pytest.mark.timeout(600)

WIDTHS = (1440, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PICTURES = os.environ.get("SHOTS", "")
"""Set to ``screen`` or ``full`` to keep two pictures of every page in ``shots/``."""
PAGES_MIN = 48
PARTS = 3
"""The pages are looked at in parts, so that one that hangs does not hide the others."""

CONTRAST = {"runOnly": ["color-contrast"]}
"""What axe looks at in the dark, which changes colours and nothing else."""
LONG = "tbody tr:nth-child(n+9)"
"""Rows that axe passes over: they are like the eight before them."""

UNFOCUSED = """
() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
  .filter(e => e.checkVisibility() && !e.disabled && e.type !== 'hidden')
  .filter(e => {
    e.focus();
    const shown = getComputedStyle(e);
    return document.activeElement !== e || shown.outlineStyle === 'none'
      || parseFloat(shown.outlineWidth) < 2;
  })
  .map(e => e.outerHTML.slice(0, 120))
"""
DIALOGS = "() => [...document.querySelectorAll('[popover]:not(#rail)')].map(e => e.id)"
FORM_WITHOUT_A_TOKEN = "<form method=post action=/you/appearance/><button>Set</button></form>"
MOVING = """
() => document.getAnimations().length + [...document.querySelectorAll('*')]
  .filter(e => getComputedStyle(e).transitionDuration.split(',').some(d => parseFloat(d))).length
"""


@pytest.fixture
def admin(visit: Visit) -> Iterator[Visit]:
    """Give the signed-in person every permission, so that every form is on its page."""
    Membership.objects.update(role=Group.objects.get(name="reliability admin"))
    with kinds():
        yield visit


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_accessible_fits_and_makes_the_browser_complain_of_nothing(
    admin: Visit, part: int
) -> None:
    every = list(pages(one_of_each(Tenant.objects.get(slug="acme"))))
    assert len(every) >= PAGES_MIN
    found = []
    for name, address in every[part::PARTS]:
        admin.open(address)
        found += faults(admin.page, name)
        if unheard := admin.complaints:
            found.append(f"{name}: {unheard}")
            admin.complaints.clear()
    assert not found, "\n".join(found)


def test_what_is_shown_before_a_bulk_act_is_accessible_and_fits(admin: Visit) -> None:
    found = []
    for verb in ("Requeue", "Discard"):
        page = admin.open("/dead-letters/?source=stripe-live")
        page.locator("tbody input[type=checkbox]").first.check()
        page.get_by_role("button", name=verb).first.click()
        expect(page.locator(".say")).to_contain_text("1 letter was ticked")
        found += faults(page, f"preview_{verb}")
    assert not found, "\n".join(found)


def test_what_is_shown_before_a_recovery_of_many_is_accessible_and_fits(
    admin: Visit,
) -> None:
    seen = one_of_each(Tenant.objects.get(slug="acme"))
    with world.local("stripe.charge.succeeded", lambda event: None):
        page = admin.open(f"/reports/{seen['reports']}/recover/")
        expect(page.get_by_role("button", name="Recover 1")).to_be_visible()
        found = faults(page, "recover_missing")
    assert not found, "\n".join(found)


def test_pages_that_refuse_are_in_the_same_dress(
    admin: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = refused(admin, 404, "/nowhere/") + refused(admin, 400, "/jobs/?typo=1")
    for status, error in ((500, ZeroDivisionError), (503, OperationalError)):
        with monkeypatch.context() as broken:
            broken.setattr("reliability.console.views.jobs.JobFilter", raising(error))
            found += refused(admin, status, "/jobs/")
    with monkeypatch.context() as slow:
        slow.setattr("reliability.console.pages.paged", raising(TooSlow))
        found += refused(admin, 503, "/jobs/?state=dead")
    Membership.objects.update(role=Group.objects.get(name="reliability viewer"))
    found += refused(admin, 403, "/members/")
    admin.page.evaluate(f"document.body.innerHTML = `{FORM_WITHOUT_A_TOKEN}`")
    with admin.page.expect_navigation():
        admin.page.get_by_role("button").click()
    found += told(admin, 403, "without_token")
    admin.context.clear_cookies()
    found += faults(admin.open("/login/"), "login")
    assert not found, "\n".join(found)


def test_what_the_policy_of_a_page_forbids_is_heard_as_a_complaint(visit: Visit) -> None:
    page = visit.open("/jobs/")
    page.evaluate(
        "document.body.append(document.createElement('style').appendChild("
        "document.createTextNode('p { color: red }')).parentNode)"
    )
    page.evaluate("document.querySelector('h1').setAttribute('style', 'color: red')")
    assert len(visit.complaints) == 2
    assert all("Content Security Policy" in one for one in visit.complaints)
    visit.complaints.clear()


def test_what_moves_rests_only_for_those_who_ask_for_it(visit: Visit) -> None:
    page = visit.open("/jobs/")
    assert page.evaluate(MOVING) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(MOVING) > 0


def raising(error: type[Exception]) -> Callable[..., Any]:
    def raised(*_: Any, **__: Any) -> None:
        raise error

    return raised


def refused(visit: Visit, status: int, address: str) -> list[str]:
    visit.open(address)
    return told(visit, status, str(status))


def told(visit: Visit, status: int, name: str) -> list[str]:
    """Look at a page with an error's status, of which the browser complains once."""
    if not visit.complaints:  # the browser may tell of it after the page has come
        visit.page.wait_for_event("console")
    assert [str(status) in complaint for complaint in visit.complaints] == [True]
    visit.complaints.clear()
    return faults(visit.page, name)


def faults(page: Page, name: str) -> list[str]:
    """Return what is wrong with the open page, on a desk and on a phone, in both schemes."""
    if PICTURES:
        keep(page, name)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.evaluate(AXE_SCRIPT)
    wrong: list[str] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            wrong += axe(page, {} if scheme == "light" else CONTRAST)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wrong.append(f"scrolls sideways at {width}")
        page.keyboard.press("Tab")
        wrong += [f"hides the focus of {one}" for one in page.evaluate(UNFOCUSED)]
    for dialog in page.evaluate(DIALOGS):
        page.evaluate(f"document.getElementById('{dialog}').showPopover()")
        wrong += axe(page, {}, f"#{dialog}")
    if page.evaluate(MOVING):
        wrong.append("moves although less motion is asked for")
    return [f"{name}: {one}" for one in wrong]


def axe(page: Page, options: dict[str, Any], within: str = "html") -> list[str]:
    found = page.evaluate(
        "([within, options]) => axe.run(within, options).then(all => all.violations)",
        [{"include": [within], "exclude": [LONG]}, options | {"resultTypes": ["violations"]}],
    )
    return [f"{one['id']} in {node['html'][:200]}" for one in found for node in one["nodes"]]


def keep(page: Page, name: str) -> None:
    SHOTS.mkdir(exist_ok=True)
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        whole = PICTURES == "full"
        page.screenshot(path=SHOTS / f"{name}.{width}.{scheme}.png", full_page=whole)
