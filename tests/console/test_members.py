"""Members: who is in the tenant as what, and that an admin is left."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from reliability.models import AuditEntry, Membership, Tenant
from reliability.models.acting import Refused
from reliability.models.roles import ROLES
from reliability.work.dead_letters import Act
from reliability.work.members import Removed, remove_member
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "admin", "ada"))


def _role(name: str) -> str:
    found = Membership.objects.filter(user__username=name).first()
    return found.role.name.removeprefix("reliability ") if found else ""


def _acts() -> list[tuple[str, str, str]]:
    entries = AuditEntry.objects.order_by("number")
    return list(entries.values_list("act", "about_id", "reason"))


def test_the_page_names_everybody_with_their_role_and_nobody_of_another_tenant(
    acme: Tenant, admin: Client
) -> None:
    rows.member(acme, "viewer", "vera")
    rows.member(rows.tenant("globex"), "operator", "otto")
    shown = admin.get("/members/").content.decode()
    assert "2 people are in acme" in shown
    assert "vera" in shown
    assert "otto" not in shown


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_an_admin_sees_or_changes_members(acme: Tenant, role: str) -> None:
    client = rows.signed_in(rows.member(acme, role, "nia"))
    User.objects.create_user("max")
    assert client.get("/members/").status_code == 403
    assert 'href="/members/"' not in client.get("/you/").content.decode()
    for act in ("add", "role", "remove"):
        asked = {"person": "nia", "role": "admin", "reason": "mine"}
        assert client.post(f"/members/{act}/", asked).status_code == 403
    assert (_role("nia"), _acts()) == (role, [])


@pytest.mark.parametrize("asked", ["max", "Max@acme.example"])
def test_somebody_with_an_account_is_added_by_name_or_mail_and_it_is_on_record(
    admin: Client, asked: str
) -> None:
    User.objects.create_user("max", "max@acme.example")
    for _ in range(2):
        answer = admin.post("/members/add/", {"person": asked, "role": "operator"})
        assert answer.status_code == 302
    assert _role("max") == "operator"
    assert _acts() == [("add member", "max", "")]


def test_an_unknown_name_a_shared_address_and_an_unknown_role_add_nobody(
    admin: Client,
) -> None:
    User.objects.create_user("max", "team@acme.example")
    User.objects.create_user("mia", "team@acme.example")
    for person, role in (
        ("nobody", "viewer"),
        ("team@acme.example", "viewer"),
        ("max", "root"),
    ):
        asked = {"person": person, "role": role}
        shown = admin.post("/members/add/", asked, follow=True).content.decode()
        assert "Nothing has changed." in shown
    assert (_role("max"), _role("mia"), _acts()) == ("", "", [])


def test_a_role_is_changed_and_a_member_removed_each_for_a_reason(
    acme: Tenant, admin: Client
) -> None:
    rows.member(acme, "viewer", "vera")
    asked = {"person": "vera", "role": "approver"}
    assert admin.post("/members/role/", asked).status_code == 400
    assert admin.post("/members/remove/", asked).status_code == 400
    assert _role("vera") == "viewer"
    admin.post("/members/role/", asked | {"reason": "signs days off"})
    admin.post("/members/role/", asked | {"reason": "signs days off"})
    assert _role("vera") == "approver"
    admin.post("/members/remove/", {"person": "vera", "reason": "left"})
    assert _role("vera") == ""
    assert User.objects.filter(username="vera").exists()
    assert _acts() == [
        ("change role", "vera", "signs days off"), ("remove member", "vera", "left"),
    ]  # fmt: skip


def test_the_last_admin_can_neither_leave_nor_step_down(acme: Tenant, admin: Client) -> None:
    switched_off = rows.member(acme, "admin", "old")
    User.objects.filter(pk=switched_off.pk).update(is_active=False)
    rows.member(rows.tenant("globex"), "admin", "gil")
    for act in ("role", "remove"):
        asked = {"person": "ada", "role": "viewer", "reason": "holiday"}
        shown = admin.post(f"/members/{act}/", asked, follow=True).content.decode()
        assert "last admin" in shown
    assert (_role("ada"), _acts()) == ("admin", [])
    rows.member(acme, "admin", "bea")
    admin.post("/members/remove/", {"person": "ada", "reason": "holiday"})
    assert _role("ada") == ""


def test_a_member_of_another_tenant_does_not_exist_here(admin: Client) -> None:
    rows.member(rows.tenant("globex"), "viewer", "gil")
    for act in ("role", "remove"):
        asked = {"person": "gil", "role": "admin", "reason": "x"}
        assert admin.post(f"/members/{act}/", asked).status_code == 404
    assert (_role("gil"), _acts()) == ("viewer", [])


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_remove_each_other_at_once_leave_one(acme: Tenant) -> None:
    ada, bea = rows.member(acme, "admin", "ada"), rows.member(acme, "admin", "bea")
    second: list[object] = []

    def remove_bea() -> None:
        try:
            second.append(remove_member(bea, Act(acme, "ada", ada.pk)))
        finally:
            connection.close()

    thread = threading.Thread(target=remove_bea)
    with transaction.atomic():
        assert isinstance(remove_member(ada, Act(acme, "bea", bea.pk)), Removed)
        thread.start()
        _until_somebody_waits()
    thread.join(timeout=20)
    assert [type(one) for one in second] == [Refused]
    assert Membership.objects.get(tenant=acme).user == bea


def _until_somebody_waits() -> None:
    """Return once another connection stands before a lock of ours."""
    for _ in range(1_000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone() != (0,):
                return
        threading.Event().wait(0.01)
    raise AssertionError("nobody waits")


def test_everybody_is_shown_every_permission_that_a_role_gives(acme: Tenant) -> None:
    shown = rows.signed_in(rows.member(acme, "viewer")).get("/you/").content.decode()
    assert shown.count('<th scope="row"') == len(ROLES["admin"])
    assert "Approve redrives that need a second person" in shown
