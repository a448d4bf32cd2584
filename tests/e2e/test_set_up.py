"""An admin makes a token and revokes it."""

import pytest
from django.contrib.auth.models import Group

from reliability.models import Membership
from tests.e2e.visits import Visit


@pytest.fixture
def admin(visit: Visit) -> Visit:
    """Make the signed-in person an admin."""
    Membership.objects.update(role=Group.objects.get(name="reliability admin"))
    return visit


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
