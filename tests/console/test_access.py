"""Who may enter which route: every role, method and foreign object, from the URLconf itself."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import path

from reliability.console import access, urls
from reliability.console.access import ANY_MEMBER, ANYBODY
from reliability.models import AuditEntry, DeadLetter, Discrepancy, Job, Report
from reliability.models.roles import ROLES
from tests.console import rows
from tests.console.objects import OBJECTS, address_of

pytestmark = pytest.mark.django_db

ROUTES: list[tuple[str, Any]] = list(access.routed(urls.urlpatterns))
GUARDED = [(route, view) for route, view in ROUTES if view.needs != ANYBODY]
OF_ONE = [(route, view) for route, view in GUARDED if "<uuid:" in route]
OF_MANY = [route for route, _ in GUARDED if "<" not in route]
READ_MIN = 25
"""Pages and exports that speak of no single thing."""


def _statuses(client: Client, route: str, public_id: object) -> Iterator[tuple[str, int]]:
    address = address_of(route, public_id)
    yield "get", client.get(address).status_code
    yield "post", client.post(address).status_code


def _snapshot() -> tuple[list[Any], int]:
    jobs = Job.objects.order_by("pk").values_list("state", "version")
    letters = DeadLetter.objects.order_by("pk").values_list("status", "closed_by")
    found = Discrepancy.objects.order_by("pk").values_list("status", "version")
    signed = Report.objects.order_by("pk").values_list("signed_by", "version")
    return [*jobs, *letters, *found, *signed], AuditEntry.objects.count()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_without_the_permission_is_refused_and_changes_nothing(role: str) -> None:
    owner = rows.tenant()
    letter = rows.letter(rows.source(owner))
    client = rows.signed_in(rows.member(owner, role))
    for route, view in GUARDED:
        before = _snapshot()
        statuses = set(dict(_statuses(client, route, letter.public_id)).values())
        if view.needs == ANY_MEMBER or view.needs in ROLES[role]:
            assert 403 not in statuses, route
        else:
            assert statuses <= {403, 405}, route
            assert 403 in statuses, route
            assert _snapshot() == before, route


def test_a_stranger_is_sent_to_the_door() -> None:
    client = Client()
    for route, _ in GUARDED:
        statuses = set(dict(_statuses(client, route, uuid.uuid4())).values())
        assert statuses <= {302, 405}, route
        assert 302 in statuses, route


def test_another_tenants_object_does_not_exist() -> None:
    globex = rows.source(rows.tenant("globex"), "adyen-eu")
    theirs = {noun: build(globex) for noun, build in OBJECTS.items()}
    client = rows.signed_in(rows.member(rows.tenant("acme"), "admin"))
    before = _snapshot()
    for route, _ in OF_ONE:
        address = address_of(route, theirs[route.partition("/")[0]].public_id)
        for answer in (
            client.get(address),
            client.post(address, {"version": 1, "reason": "x"}),
        ):
            assert answer.status_code in {404, 405}, route
            assert b"adyen-eu" not in answer.content, route
    assert _snapshot() == before


def test_the_tenants_own_object_does_exist() -> None:
    acme = rows.source(rows.tenant("acme"))
    ours = {noun: build(acme) for noun, build in OBJECTS.items()}
    client = rows.signed_in(rows.member(acme.tenant, "admin"))
    for route, _ in OF_ONE:
        statuses = dict(_statuses(client, route, ours[route.partition("/")[0]].public_id))
        assert 404 not in statuses.values(), route


def test_every_route_refuses_the_other_method_or_takes_both_for_nothing() -> None:
    """Each guarded route answers 405 to exactly one of GET and POST."""
    owner = rows.tenant()
    letter = rows.letter(rows.source(owner))
    client = rows.signed_in(rows.member(owner, "admin"))
    for route, _ in GUARDED:
        statuses = dict(_statuses(client, route, letter.public_id))
        assert list(statuses.values()).count(405) == 1, route


def test_lists_and_traces_show_one_tenant_only() -> None:
    theirs = rows.letter(rows.source(rows.tenant("globex"), "adyen-eu"), "evt_theirs")
    acme = rows.tenant("acme")
    rows.letter(rows.source(acme), "evt_ours")
    client = rows.signed_in(rows.member(acme, "admin"))
    read = 0
    for route in OF_MANY:
        answer = client.get(f"/{route}")
        shown = answer.getvalue()
        assert b"evt_theirs" not in shown, route
        assert b"adyen-eu" not in shown, route
        read += answer.status_code == 200
    # Besides acts, only what has to be told of which thing to speak is not read: a kind, a cause.
    assert read >= READ_MIN
    for find in ("evt_theirs", theirs.job.public_id, theirs.public_id, f"DL-{theirs.pk}"):
        assert b"Never seen here" in client.get("/trace/", {"find": str(find)}).content


def test_a_bulk_act_with_one_foreign_letter_is_refused_whole() -> None:
    theirs = rows.letter(rows.source(rows.tenant("globex")))
    acme = rows.tenant("acme")
    ours = rows.letter(rows.source(acme))
    client = rows.signed_in(rows.member(acme, "admin"))
    before = _snapshot()
    for act in ("requeue/", "discard/", "requeue/preview/", "discard/preview/"):
        ticked = [f"{ours.public_id}:1", f"{theirs.public_id}:1"]
        answer = client.post(f"/dead-letters/{act}", {"letter": ticked, "reason": "why"})
        assert answer.status_code == 404
    assert _snapshot() == before


def test_a_foreign_source_is_no_filter() -> None:
    rows.source(rows.tenant("globex"), "adyen-eu")
    client = rows.signed_in(rows.member(rows.tenant("acme"), "admin"))
    assert client.get("/dead-letters/", {"source": "adyen-eu"}).status_code == 400


def test_a_request_from_another_site_changes_nothing() -> None:
    owner = rows.tenant()
    letter = rows.letter(rows.source(owner))
    client = rows.signed_in(rows.member(owner, "admin"))
    before = _snapshot()
    answer = client.post(
        f"/dead-letters/{letter.public_id}/requeue/",
        {"version": 1},
        headers={"Sec-Fetch-Site": "cross-site"},
    )
    assert answer.status_code == 403
    assert _snapshot() == before


def test_an_act_without_its_token_changes_nothing() -> None:
    owner = rows.tenant()
    letter = rows.letter(rows.source(owner))
    client = Client(enforce_csrf_checks=True)
    client.force_login(
        rows.member(owner, "admin"), backend="django.contrib.auth.backends.ModelBackend"
    )
    before = _snapshot()
    address = f"/dead-letters/{letter.public_id}/requeue/"
    assert client.post(address, {"version": 1}).status_code == 403
    assert _snapshot() == before


def test_a_member_of_two_tenants_switches_between_them_and_to_no_third() -> None:
    acme, globex, third = rows.tenant("acme"), rows.tenant("globex"), rows.tenant("third")
    rows.letter(rows.source(acme), "evt_acme")
    rows.letter(rows.source(globex), "evt_globex")
    user = rows.member(acme, "viewer", "ida")
    rows.member(globex, "operator", "ida")
    client = rows.signed_in(user)
    assert b"evt_acme" in client.get("/dead-letters/").content
    client.post("/you/tenant/", {"tenant": globex.public_id})
    switched = client.get("/dead-letters/").content
    assert b"evt_globex" in switched
    assert b"evt_acme" not in switched
    assert b"Requeue" in switched
    assert client.post("/you/tenant/", {"tenant": third.public_id}).status_code == 404


def test_somebody_without_a_tenant_is_told_so() -> None:
    answer = rows.signed_in(User.objects.create_user("nobody")).get("/")
    assert answer.status_code == 403
    assert b"member of no tenant" in answer.content


def test_start_is_refused_while_a_route_declares_no_permission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert access.every_view_declares_a_permission() == []
    naked = path("naked/", lambda request: request, name="naked")
    monkeypatch.setattr(urls, "urlpatterns", [*urls.urlpatterns, naked])
    (error,) = access.every_view_declares_a_permission()
    assert error.id == "reliability.E030"
    assert "naked/" in error.msg


def test_every_answer_carries_the_headers_of_a_page_that_runs_no_foreign_script() -> None:
    client = rows.signed_in(rows.member(rows.tenant(), "admin"))
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    for address in ("/", "/nowhere/", "/jobs/?typo=1", "/login/", "/healthz", "/you/tenant/"):
        answer = client.get(address)
        assert answer.headers["Content-Security-Policy"] == policy
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_session_nobody_used_for_half_an_hour_ends(time_machine: Any) -> None:
    time_machine.move_to(rows.NOON, tick=False)
    client = rows.signed_in(rows.member(rows.tenant(), "viewer"))
    client.get("/jobs/")
    time_machine.shift(timedelta(minutes=29))
    assert client.get("/jobs/").status_code == 200
    time_machine.shift(timedelta(minutes=29))
    assert client.get("/jobs/").status_code == 200
    time_machine.shift(timedelta(minutes=31))
    assert client.get("/jobs/").status_code == 302
    assert client.get("/jobs/").status_code == 302


def test_a_page_that_refreshes_itself_keeps_no_session_alive(time_machine: Any) -> None:
    time_machine.move_to(rows.NOON, tick=False)
    client = rows.signed_in(rows.member(rows.tenant(), "viewer"))
    client.get("/")
    time_machine.shift(timedelta(minutes=15, seconds=10))
    assert client.get("/", headers={"HX-Request": "true"}).status_code == 200
    time_machine.shift(timedelta(minutes=15, seconds=10))
    ended = client.get("/", headers={"HX-Request": "true"})
    assert ended.headers["HX-Redirect"] == "/login/?next=/"
    assert client.get("/").status_code == 302


def test_a_mails_link_leads_a_member_of_several_tenants_into_the_right_one() -> None:
    acme, globex = rows.tenant("acme"), rows.tenant("globex")
    rows.source(acme, "stripe-live")
    rows.source(globex, "adyen-eu")
    user = rows.member(acme, "operator")
    rows.member(globex, "viewer", user.username)
    client = rows.signed_in(user)
    assert client.get("/dead-letters/?source=adyen-eu").status_code == 400
    shown = client.get("/in/globex/dead-letters/?source=adyen-eu", follow=True)
    assert shown.redirect_chain == [("/dead-letters/?source=adyen-eu", 302)]
    assert shown.status_code == 200


@pytest.mark.parametrize("where", ["/evil.example/", "\\evil.example", "https://evil.example"])
def test_a_mails_link_leads_to_no_other_host(where: str) -> None:
    client = rows.signed_in(rows.member(rows.tenant("acme"), "viewer"))
    answer = client.get(f"/in/acme/{where}")
    assert urlsplit(answer.headers.get("Location", "/")).netloc == ""
    assert not answer.headers.get("Location", "/").startswith(("//", "/\\"))


def test_a_link_into_a_tenant_one_is_not_in_does_not_exist() -> None:
    rows.tenant("globex")
    client = rows.signed_in(rows.member(rows.tenant("acme"), "admin"))
    assert client.get("/in/globex/dead-letters/").status_code == 404
