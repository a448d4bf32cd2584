"""What a page offers is what the role may do: no form, box or key that would be refused."""

import re
from typing import Any

import pytest
from django.urls import resolve

from reliability.console import access, urls
from reliability.console.access import ANY_MEMBER, ANYBODY
from reliability.models.roles import ROLES
from tests.console import rows
from tests.console.objects import OBJECTS, address_of

pytestmark = pytest.mark.django_db

POSTING = re.compile(r"<form[^>]*method=\"post\"[^>]*?action=\"([^\"]*)\"")


@pytest.mark.parametrize("role", ROLES)
def test_no_page_offers_a_form_that_the_role_may_not_send(role: str) -> None:
    acme = rows.source(rows.tenant("acme"))
    ours = {noun: build(acme) for noun, build in OBJECTS.items()}
    client = rows.signed_in(rows.member(acme.tenant, role, "nia"))
    offered = set()
    for route, _ in access.routed(urls.urlpatterns):
        thing = ours.get(route.partition("/")[0])
        answer = client.get(address_of(route, thing.public_id if thing else ""))
        if answer.streaming or answer.status_code != 200:
            continue
        for action in POSTING.findall(answer.content.decode()):
            view: Any = resolve(action).func
            assert view.needs in {ANYBODY, ANY_MEMBER, *ROLES[role]}, (
                f"{route} offers {action}"
            )
            offered.add(view.needs)
    assert len(offered) >= FORMS_MIN[role], offered


FORMS_MIN = {"viewer": 3, "operator": 10, "approver": 11, "admin": 17}
"""Permissions for which some page has a form, at the least; a viewer exports and chooses."""


def test_a_viewer_sees_no_box_to_tick_and_no_key_to_requeue() -> None:
    owner = rows.tenant()
    letter = rows.letter(rows.source(owner))
    client = rows.signed_in(rows.member(owner, "viewer"))
    for address in ("/dead-letters/", f"/dead-letters/{letter.public_id}/"):
        shown = client.get(address).content.decode()
        assert 'name="letter"' not in shown
        assert "data-verb" not in shown
        for verb in ("requeue/", "discard/", "restore/", "undo/", "reveal/"):
            assert f'{verb}"' not in shown


def test_a_page_below_an_entry_of_the_rail_marks_its_entry() -> None:
    of = rows.source(rows.tenant())
    client = rows.signed_in(rows.member(of.tenant, "viewer"))
    for address, entry in (
        (f"/dead-letters/{rows.letter(of).public_id}/", "/dead-letters/"),
        ("/discrepancies/", "/reports/"),
        (f"/sources/{of.public_id}/", "/sources/"),
    ):
        shown = client.get(address).content.decode()
        assert f'href="{entry}" aria-current="true">' in shown
        assert shown.count('aria-current="true"') == 1
