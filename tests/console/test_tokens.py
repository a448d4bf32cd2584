"""Tokens: shown once, listed without themselves, ended by a person or by their day."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from reliability.models import ApiToken, AuditEntry, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "admin", "ada"))


def _text(shown: str) -> str:
    """Return the one token a page shows whole, or nothing."""
    _, found, rest = shown.partition('data-copy="rel_')
    return f"rel_{rest.partition(chr(34))[0]}" if found else ""


def _acts() -> list[tuple[str, str, str]]:
    entries = AuditEntry.objects.order_by("number")
    return list(entries.values_list("act", "about_id", "reason"))


def test_a_new_token_is_shown_once_and_works(acme: Tenant, admin: Client) -> None:
    admin.post("/tokens/make/", {"name": "shop"})
    kept = str([session.get_decoded() for session in Session.objects.all()])
    text = _text(admin.get("/tokens/").content.decode())
    assert ApiToken.holder(text) == acme
    assert text not in kept
    again = admin.get("/tokens/").content.decode()
    assert text not in again
    assert f"rel_…{text[-4:]}" in again
    assert _acts() == [("add token", "shop", "")]
    assert text not in str(AuditEntry.objects.values_list("facts", flat=True))


def test_a_second_click_makes_no_second_token_and_the_first_is_still_shown(
    admin: Client,
) -> None:
    for _ in range(2):
        admin.post("/tokens/make/", {"name": "shop"})
    shown = admin.get("/tokens/").content.decode()
    assert "already" in shown
    assert ApiToken.holder(_text(shown)) is not None
    assert ApiToken.objects.count() == 1
    assert len(_acts()) == 1


@pytest.mark.parametrize("name", ["", "two words", "x" * 61])
def test_a_name_that_is_none_makes_no_token(admin: Client, name: str) -> None:
    shown = admin.post("/tokens/make/", {"name": name}, follow=True).content.decode()
    assert "cannot name a token" in shown
    assert ApiToken.objects.count() == 0


def test_a_token_ends_with_its_last_day(
    admin: Client, acme: Tenant, time_machine: Any
) -> None:
    time_machine.move_to(datetime(2026, 3, 2, 12, tzinfo=UTC), tick=False)
    admin.get("/tokens/")
    admin.post("/tokens/make/", {"name": "shop", "last_day": "2026-03-03"})
    text = _text(admin.get("/tokens/").content.decode())
    time_machine.move_to(datetime(2026, 3, 3, 23, 59, 59, tzinfo=UTC), tick=False)
    assert ApiToken.holder(text) == acme
    time_machine.move_to(datetime(2026, 3, 4, tzinfo=UTC), tick=False)
    assert ApiToken.holder(text) is None


@pytest.mark.parametrize(("day", "status"), [("2026-03-01", 302), ("soon", 400)])
def test_a_last_day_that_is_over_or_none_makes_no_token(
    admin: Client, time_machine: Any, day: str, status: int
) -> None:
    time_machine.move_to(datetime(2026, 3, 2, 12, tzinfo=UTC), tick=False)
    client = rows.signed_in(rows.member(rows.tenant("late"), "admin"))
    answer = client.post("/tokens/make/", {"name": "shop", "last_day": day})
    assert answer.status_code == status
    assert ApiToken.objects.count() == 0


def test_its_use_is_noted_at_most_once_a_minute(acme: Tenant, time_machine: Any) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    time_machine.move_to(noon, tick=False)
    text = ApiToken.issue(acme, "shop")
    assert ApiToken.objects.get().last_used_at is None
    for second, noted in ((0, 0), (59, 0), (60, 60)):
        time_machine.move_to(noon.timestamp() + second, tick=False)
        ApiToken.holder(text)
        used = ApiToken.objects.get().last_used_at
        assert used is not None
        assert used.timestamp() == noon.timestamp() + noted


def test_a_revoked_token_lets_nobody_in_and_needs_a_reason(
    acme: Tenant, admin: Client
) -> None:
    text = ApiToken.issue(acme, "shop")
    assert admin.post("/tokens/revoke/", {"name": "shop"}).status_code == 400
    assert ApiToken.holder(text) == acme
    for _ in range(2):
        asked = {"name": "shop", "reason": "leaked"}
        assert admin.post("/tokens/revoke/", asked).status_code == 302
    assert ApiToken.holder(text) is None
    assert _acts() == [("revoke token", "shop", "leaked")]
    assert "No token." in admin.get("/tokens/").content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_an_admin_sees_makes_or_revokes_tokens(acme: Tenant, role: str) -> None:
    text = ApiToken.issue(acme, "shop")
    client = rows.signed_in(rows.member(acme, role))
    assert client.get("/tokens/").status_code == 403
    assert 'href="/tokens/"' not in client.get("/you/").content.decode()
    for act in ("make", "revoke"):
        asked = {"name": "shop" if act == "revoke" else "more", "reason": "mine"}
        assert client.post(f"/tokens/{act}/", asked).status_code == 403
    assert ApiToken.holder(text) == acme
    assert _acts() == []


def test_another_tenants_token_is_neither_listed_nor_revoked(admin: Client) -> None:
    globex = rows.tenant("globex")
    text = ApiToken.issue(globex, "theirs")
    assert "theirs" not in admin.get("/tokens/").content.decode()
    asked = {"name": "theirs", "reason": "x"}
    assert admin.post("/tokens/revoke/", asked).status_code == 404
    assert ApiToken.holder(text) == globex
