"""Saved views: own or shared, opened as they were saved, and never wider than that."""

import pytest
from django.test import Client

from reliability.console import saved_views
from reliability.models import AuditEntry, SavedView, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "operator", "n.okafor"))


@pytest.fixture
def viewer(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "viewer", "ida"))


def _save(client: Client, name: str = "locked periods", **more: str) -> int:
    data = {"page": "dead_letters", "query": "text=period_locked", "name": name} | more
    return client.post("/saved-views/save/", data).status_code


def test_a_shared_view_is_opened_by_everybody_from_above_the_list(
    operator: Client, viewer: Client
) -> None:
    assert _save(operator, shared="on") == 302
    shown = viewer.get("/dead-letters/").content.decode()
    assert 'href="?text=period_locked"' in shown
    assert "locked periods" in shown
    assert "locked periods" not in viewer.get("/jobs/").content.decode()
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.actor) == ("save view", "n.okafor")
    assert entry.facts["query"] == "text=period_locked"


def test_an_own_view_is_seen_by_nobody_else_and_its_number_is_a_404(
    operator: Client, viewer: Client
) -> None:
    assert _save(viewer) == 302
    view = SavedView.objects.get()
    assert "locked periods" in viewer.get("/dead-letters/").content.decode()
    assert "locked periods" not in operator.get("/dead-letters/").content.decode()
    assert operator.post(f"/saved-views/{view.public_id}/delete/").status_code == 404
    assert viewer.post(f"/saved-views/{view.public_id}/delete/").status_code == 302
    assert not SavedView.objects.exists()


def test_a_viewer_keeps_views_but_shares_none(viewer: Client) -> None:
    assert b'name="shared"' not in viewer.get("/dead-letters/?kind=x").content
    assert _save(viewer, shared="on") == 403
    assert not SavedView.objects.exists()


def test_a_shared_view_is_deleted_by_its_owner_or_an_admin_and_by_nobody_else(
    acme: Tenant, operator: Client
) -> None:
    _save(operator, "one", shared="on")
    _save(operator, "two", shared="on")
    one, two = SavedView.objects.order_by("pk")
    other = rows.signed_in(rows.member(acme, "approver"))
    assert other.post(f"/saved-views/{one.public_id}/delete/").status_code == 403
    assert operator.post(f"/saved-views/{one.public_id}/delete/").status_code == 302
    admin = rows.signed_in(rows.member(acme, "admin"))
    assert admin.post(f"/saved-views/{two.public_id}/delete/").status_code == 302
    assert AuditEntry.objects.filter(act="delete view").count() == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": "text=ab"}, {"query": "tekst=x"}, {"query": ""}, {"query": "after=1"},
        {"page": "overview"}, {"page": ""}, {"name": ""}, {"name": "x" * 61},
        {"page": "jobs"},
    ],
)  # fmt: skip
def test_a_view_that_could_not_be_opened_is_not_saved(
    operator: Client, wrong: dict[str, str]
) -> None:
    assert _save(operator, **{"name": "x"} | wrong) == 400
    assert not SavedView.objects.exists()


def test_a_view_whose_filter_has_gone_is_refused_with_a_remedy_and_never_widens(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    rows.letter(stripe, "evt_any")
    rows.saved_view(stripe, query="source=stripe-old&gone=1", name="old")
    shown = operator.get("/dead-letters/").content.decode()
    assert 'href="?source=stripe-old&amp;gone=1"' in shown
    answer = operator.get("/dead-letters/?source=stripe-old&gone=1")
    assert answer.status_code == 400
    assert b"evt_any" not in answer.content
    assert b"delete the view and save it anew" in answer.content


def test_a_name_is_taken_once_for_shared_views_and_once_for_each_persons_own(
    operator: Client, viewer: Client
) -> None:
    assert [_save(operator), _save(operator), _save(viewer)] == [302, 400, 302]
    assert _save(operator, shared="on") == 302
    assert SavedView.objects.count() == 3


def test_no_more_views_are_kept_than_fit(
    operator: Client, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "VIEWS_MAX", 2)
    assert [_save(operator, f"v{n}") for n in range(3)] == [302, 302, 400]
    assert _save(viewer) == 302
    assert _save(operator, "shared one", shared="on") == 302
    assert SavedView.objects.count() == 4


def test_the_view_in_use_is_marked_and_offers_to_be_deleted(operator: Client) -> None:
    _save(operator)
    view = SavedView.objects.get()
    delete = f"/saved-views/{view.public_id}/delete/"
    assert delete not in operator.get("/dead-letters/").content.decode()
    assert delete in operator.get("/dead-letters/?text=period_locked").content.decode()


def test_views_of_another_tenant_are_not_shown(operator: Client) -> None:
    rows.saved_view(rows.source(rows.tenant("globex")), name="theirs")
    assert "theirs" not in operator.get("/dead-letters/").content.decode()


LISTS = {
    "audit": "actor=ida", "causes": "sort=count", "dead_letters": "kind=x", "deliveries": "kind=x",
    "discrepancies": "reference=x", "jobs": "kind=x", "redrives": "by=ida", "refused": "reason=x",
    "runs": "job=sweep", "statements": "day=2026-03-01",
}  # fmt: skip


@pytest.mark.parametrize("page", LISTS)
def test_every_list_keeps_views_of_its_own(operator: Client, page: str) -> None:
    query = LISTS[page]
    data = {"page": page, "query": query, "name": "kept here"}
    answer = operator.post("/saved-views/save/", data, follow=True)
    assert answer.status_code == 200
    assert f'href="?{query}" aria-current="page">kept here' in answer.content.decode()
