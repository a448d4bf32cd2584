"""An admin's pages on a desk and on a phone, light and dark, without a finding of axe."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from django.contrib.auth.models import Group

from reliability.models import ApiToken, Membership, Source, SourceSecret
from tests.e2e.visits import SHOTS, Visit

PAGES = ("sources", "sources/new", "sources/{source}", "members", "tokens")


@pytest.fixture
def admin(visit: Visit) -> Visit:
    """Make the signed-in person an admin, and give them something to look at."""
    group = Group.objects.get(name="reliability admin")
    Membership.objects.update(role=group)
    source = Source.objects.filter(internal=False).order_by("pk")[0]
    SourceSecret.objects.rotate(source, "whsec_b25l", overlap_until=source.created_at)
    SourceSecret.objects.rotate(source, "whsec_dHdv", overlap_until=source.created_at)
    ApiToken.issue(source.tenant, "shop")
    return visit


@pytest.mark.parametrize("width", [1440, 390])
def test_the_pages_fit_and_axe_finds_nothing(admin: Visit, width: int) -> None:
    source = Source.objects.filter(internal=False).order_by("pk")[0]
    admin.page.set_viewport_size({"width": width, "height": 900})
    SHOTS.mkdir(exist_ok=True)
    for path in PAGES:
        page = admin.open(f"/{path.format(source=source.public_id)}/")
        name = path.format(source="one").replace("/", "_")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=SHOTS / f"{name}.{width}.{scheme}.png", full_page=True)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_a_token_is_made_shown_once_and_revoked_by_mouse(admin: Visit) -> None:
    page = admin.open("/tokens/")
    page.get_by_label("Name: letters").fill("till")
    page.get_by_role("button", name="Make the token").click()
    assert page.get_by_text("it is shown this once").is_visible()
    page = admin.open("/tokens/")
    assert not page.get_by_text("it is shown this once").is_visible()
    row = page.get_by_role("row").filter(has_text="till")
    row.get_by_text("Revoke…").click()
    row.get_by_label("Reason").fill("no longer used")
    row.get_by_role("button", name="Revoke till").click()
    assert page.get_by_text("lets nobody in any more").is_visible()
