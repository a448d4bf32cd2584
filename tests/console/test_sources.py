"""Sources: what their pages say, and what an admin may do to them."""

import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reliability.claim import door
from reliability.models import (
    AuditEntry,
    Job,
    ProcessedKey,
    Receipt,
    Refusal,
    Source,
    SourceSecret,
    Tenant,
)
from reliability.work.drain import drain
from reliability.work.holds import free_unpaused
from tests.console import rows
from tests.database.live import serving

pytestmark = pytest.mark.django_db

WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def admin(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "admin", "ada"))


@pytest.fixture
def stripe(acme: Tenant) -> Source:
    made = rows.source(acme, preset="stripe")
    SourceSecret.objects.rotate(made, WHSEC, overlap_until=timezone.now())
    return made


def _page(client: Client, address: str) -> str:
    return unescape(client.get(address).content.decode())


def _at(source: Source, act: str = "") -> str:
    return f"/sources/{source.public_id}/{act}"


def _acts() -> list[tuple[str, str, str]]:
    entries = AuditEntry.objects.order_by("number")
    return list(entries.values_list("act", "about_id", "reason"))


def _shown(page: str) -> str:
    """Return the secret a page shows, the address apart."""
    found = re.findall(r'data-copy="([^"]+)"', page)
    return next((text for text in found if "/hooks/" not in text), "")


# What the pages say


def test_every_number_of_the_list_leads_to_as_many_rows(
    acme: Tenant, stripe: Source, admin: Client
) -> None:
    key = rows.key(stripe)
    rows.receipt(key, "duplicate")
    rows.receipt(key, "duplicate")
    rows.receipt(key, "duplicate", at=timezone.now() - timedelta(hours=25))
    hour = timezone.now()
    Refusal.objects.create(
        tenant=acme, source=stripe, reason="wrong signature", hour=hour, count=7, last_at=hour,
        last_size_bytes=2, last_sha256=bytes(32),
    )  # fmt: skip
    rows.receipt(rows.key(rows.source(acme, "other")), "duplicate")
    page = _page(admin, "/sources/")
    row = page.partition("stripe-live</a>")[2].partition("</tr>")[0]
    assert '<a href="/deliveries/?source=stripe-live"><time' in row
    numbers = re.findall(r'<a href="([^"]+)">(\d+)</a>', row)
    assert [number for _, number in numbers] == ["1", "2", "7"]
    assert "1 receipt matches" in _page(admin, numbers[0][0])
    assert "2 receipts match" in _page(admin, numbers[1][0])
    refused = _page(admin, numbers[2][0])
    assert "wrong signature" in refused
    assert ">7<" in refused
    assert [count for _, count in re.findall(r'<a[^>]* href="(/del[^"]+)">(\d+)', _page(admin, _at(stripe)))] == ["1", "2", "7"]  # fmt: skip


def test_many_sources_take_no_more_queries_than_one(
    acme: Tenant, stripe: Source, admin: Client, django_assert_num_queries: Any
) -> None:
    rows.receipt(rows.key(stripe), "accepted")
    _page(admin, "/sources/")
    with CaptureQueriesContext(connection) as one:
        _page(admin, "/sources/")
    for n in range(5):
        rows.receipt(rows.key(rows.source(acme, f"source-{n}")), "accepted")
    with django_assert_num_queries(len(one)):
        assert "6 sources" in _page(admin, "/sources/")


def test_where_more_came_than_is_counted_the_figures_begin_later_and_stay_exact(
    stripe: Source, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Three:
        count_max = 3

    monkeypatch.setattr("reliability.console.traffic.conf", lambda: Three)
    now = timezone.now()
    for minutes in (50, 40, 30, 20, 10):
        rows.receipt(rows.key(stripe, f"evt_{minutes}"), "duplicate",
                     at=now - timedelta(minutes=minutes))  # fmt: skip
    Receipt.objects.filter(verdict="accepted").delete()
    page = _page(admin, "/sources/")
    row = page.partition("stripe-live</a>")[2].partition("</tr>")[0]
    [(_, accepted), (href, repeats), _] = re.findall(r'<a href="([^"]+)">(\d+)</a>', row)
    assert (accepted, repeats) == ("0", "3")
    assert "3 receipts match" in _page(admin, href)
    assert "Counted since" in page


def test_a_list_says_what_is_paused_and_has_its_empty_states(
    acme: Tenant, admin: Client
) -> None:
    assert "No source yet." in _page(admin, "/sources/")
    rows.source(acme, "here", paused_at=timezone.now())
    rows.source(rows.tenant("globex"), "theirs")
    Source.objects.create(tenant=acme, slug="jobs", internal=True)
    page = _page(admin, "/sources/")
    assert "1 source, 1 paused" in page
    assert "theirs" not in page
    assert "No source matches." in _page(admin, "/sources/?mode=test")
    assert admin.get("/sources/?nonsense=1").status_code == 400


def test_a_source_is_told_in_words_and_its_secrets_by_number_and_end(
    acme: Tenant, stripe: Source, admin: Client
) -> None:
    until = timezone.now() + timedelta(hours=24)
    SourceSecret.objects.rotate(stripe, "whsec_bmV3IHNlY3JldA==", overlap_until=until)
    Source.objects.filter(pk=stripe.pk).update(
        options={"tolerance_seconds": 600}, statement_format="stripe-balance-csv",
        statement_kinds=["charge"], statement_deadline_hours=9, zone="Europe/Berlin",
    )  # fmt: skip
    page = _page(admin, _at(stripe))
    for said in (
        f"/hooks/{stripe.endpoint_token}/", "in the header Stripe-Signature",
        "Tolerated clock difference, seconds", "600", "stripe-balance-csv", "Europe/Berlin",
        "expected within 9 h", "once its events are claimed", "none, handlers of ours",
        "…LaSw", "…dA==", "current", "previous",
    ):  # fmt: skip
        assert said in page, said
    assert WHSEC not in page
    assert "bmV3IHNlY3JldA" not in page


# Adding one


@pytest.mark.django_db
def test_a_source_is_added_with_a_secret_made_here_and_shown_once(
    acme: Tenant, admin: Client
) -> None:
    asked = {"slug": "stripe-test", "preset": "stripe", "mode": "test", "secret_from": "made"}
    admin.post("/sources/add/", asked)
    source = Source.objects.get(tenant=acme)
    assert (source.slug, source.scheme, source.mode) == ("stripe-test", "stripe", "test")
    secret = SourceSecret.objects.get().open()
    kept = str([session.get_decoded() for session in Session.objects.all()])
    assert secret not in kept
    assert _shown(_page(admin, _at(source))) == secret
    assert secret not in _page(admin, _at(source))
    assert _acts() == [("add source", "stripe-test", "")]
    assert secret not in str(AuditEntry.objects.values_list("facts", flat=True))


def test_a_second_click_adds_nothing_and_still_leads_to_the_secret(admin: Client) -> None:
    asked = {"slug": "stripe-live", "preset": "stripe", "secret_from": "made"}
    admin.post("/sources/add/", asked)
    page = admin.post("/sources/add/", asked, follow=True).content.decode()
    assert "has a source" in page
    assert _shown(unescape(page)) == SourceSecret.objects.get().open()
    assert len(_acts()) == 1


def test_the_providers_own_secret_and_options_are_kept_and_not_shown(
    acme: Tenant, admin: Client
) -> None:
    asked = {
        "slug": "shop", "preset": "generic-hmac", "secret_from": "given",
        "secret": " a long word of theirs ", "options": "header=X-Shop\r\n\r\ntolerance_seconds=60",
        "zone": "Europe/Berlin", "statement_format": "mapped-csv", "statement_kinds": "charge, refund",
    }  # fmt: skip
    page = admin.post("/sources/add/", asked, follow=True).content.decode()
    assert "a long word" not in page
    source = Source.objects.get(tenant=acme)
    assert SourceSecret.objects.get().open() == "a long word of theirs"
    assert (source.options["header"], source.options["tolerance_seconds"]) == ("X-Shop", 60)
    assert source.statement_kinds == ["charge", "refund"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"secret_from": "given", "secret": "  "}, "The secret is empty"),
        ({"secret_from": "given"}, "The secret is empty"),
        ({"secret_from": "made", "secret": "theirs"}, "one was to be made here"),
        ({"slug": "a/b"}, "cannot name a source"),
        ({"preset": "strip"}, "Unknown preset"),
        ({"mode": "sandbox"}, "Unknown mode"),
        ({"zone": "Mars/Olympus"}, "no time zone"),
        ({"statement_format": "xls"}, "Unknown statement format"),
        ({"preset": "paypal"}, "PayPal gives no secret"),
        ({"preset": "adyen", "secret_from": "given", "secret": "no hex"}, "cannot work like"),
    ],
)
def test_what_cannot_be_a_source_is_said_and_adds_nothing(
    admin: Client, wrong: dict[str, str], said: str
) -> None:
    asked = {"slug": "here", "preset": "stripe", "secret_from": "made"} | wrong
    page = unescape(admin.post("/sources/add/", asked, follow=True).content.decode())
    assert said in page
    assert "Nothing has changed." in page
    assert (Source.objects.count(), _acts()) == (0, [])


# Its secret


def test_a_rotation_needs_a_reason_keeps_the_old_secret_a_day_and_happens_once(
    stripe: Source, admin: Client, time_machine: Any
) -> None:
    time_machine.move_to(rows.NOON, tick=False)
    admin = rows.signed_in(rows.member(stripe.tenant, "admin", "bea"))
    current = SourceSecret.objects.get().pk
    asked: dict[str, Any] = {"current": current, "secret_from": "made"}
    assert admin.post(_at(stripe, "rotate/"), asked).status_code == 400
    assert SourceSecret.objects.count() == 1
    asked |= {"reason": "it leaked"}
    admin.post(_at(stripe, "rotate/"), asked)
    page = admin.post(_at(stripe, "rotate/"), asked, follow=True).content.decode()
    assert "was rotated since" in page
    old, new = SourceSecret.objects.order_by("pk")
    assert old.expires_at == rows.NOON + timedelta(hours=24)
    assert new.expires_at is None
    assert _acts() == [("rotate secret", "stripe-live", "it leaked")]


@pytest.mark.parametrize("secret", ["", "whsec_"])
def test_a_rotation_to_an_empty_secret_is_refused(
    stripe: Source, admin: Client, secret: str
) -> None:
    asked = {
        "current": SourceSecret.objects.get().pk, "secret_from": "given", "secret": secret,
        "reason": "r",
    }  # fmt: skip
    page = admin.post(_at(stripe, "rotate/"), asked, follow=True).content.decode()
    assert "Nothing has changed." in page
    assert SourceSecret.objects.get().open() == WHSEC
    assert _acts() == []


# A pause


def test_a_paused_source_holds_what_is_ready_and_what_comes_until_it_is_resumed(
    stripe: Source, admin: Client
) -> None:
    job = rows.job(rows.key(stripe))
    other = rows.job(rows.key(rows.source(stripe.tenant, "other")))
    assert admin.post(_at(stripe, "pause/")).status_code == 400
    for _ in range(2):
        admin.post(_at(stripe, "pause/"), {"reason": "their fault"})
    assert Job.objects.get(pk=job.pk).held == "paused"
    assert Job.objects.get(pk=other.pk).held == ""
    assert free_unpaused(10) == 0
    page = _page(admin, _at(stripe))
    assert "1 held" in page
    assert "1 job matches" in _page(admin, "/jobs/?source=stripe-live&held=paused")
    assert admin.post(_at(stripe, "resume/")).status_code == 400
    for _ in range(2):
        admin.post(_at(stripe, "resume/"), {"reason": "mended"})
    assert Job.objects.get(pk=job.pk).held == ""
    assert _acts() == [
        ("pause source", "stripe-live", "their fault"),
        ("resume source", "stripe-live", "mended"),
    ]


def test_a_job_of_a_door_that_has_not_heard_of_the_pause_does_not_start(
    stripe: Source, admin: Client
) -> None:
    admin.post(_at(stripe, "pause/"), {"reason": "their fault"})
    slipped = rows.job(rows.key(stripe, kind="reliability.test"))
    drain("local")
    slipped.refresh_from_db()
    assert (slipped.state, slipped.held) == ("ready", "paused")


# Who may


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_others_see_the_page_without_address_or_button_and_may_not_act(
    stripe: Source, role: str
) -> None:
    client = rows.signed_in(rows.member(stripe.tenant, role))
    page = _page(client, _at(stripe)) + _page(client, "/sources/")
    assert stripe.endpoint_token not in page
    for verb in ("rotate/", "pause/", "resume/", "test/", "/sources/new/"):
        assert f'{verb}"' not in page
    asked = {"reason": "mine", "slug": "mine", "preset": "stripe", "secret_from": "made"}
    for address in (
        *(_at(stripe, v) for v in ("rotate/", "pause/", "test/")),
        "/sources/add/",
    ):
        assert client.post(address, asked).status_code == 403
    stripe.refresh_from_db()
    assert (stripe.paused_at, Source.objects.count(), _acts()) == (None, 1, [])


# A test event


def test_without_our_own_address_nothing_is_sent(
    stripe: Source, admin: Client, settings: Any
) -> None:
    settings.RELIABILITY_BASE_URL = ""
    asked = {"event_id": "test_" + "ab" * 12}
    page = admin.post(_at(stripe, "test/"), asked, follow=True).content.decode()
    assert "set RELIABILITY_BASE_URL" in page
    assert _acts() == []


def test_an_address_inside_the_network_is_refused_unless_it_is_this_machine(
    stripe: Source, admin: Client, settings: Any
) -> None:
    settings.RELIABILITY_BASE_URL = "http://10.1.2.3:8000"
    asked = {"event_id": "test_" + "ab" * 12}
    page = admin.post(_at(stripe, "test/"), asked, follow=True).content.decode()
    assert "not public" in page
    assert "outbound_private_networks" in page


@pytest.mark.parametrize("event_id", ["", "evt_real", "test_zz", "test_ab"])
def test_a_test_event_has_no_id_but_the_pages_own(
    stripe: Source, admin: Client, event_id: str
) -> None:
    assert admin.post(_at(stripe, "test/"), {"event_id": event_id}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_test_event_goes_through_the_real_door_and_is_found_in_its_trace(
    stripe: Source, admin: Client, settings: Any, tmp_path: Path
) -> None:
    door.forget()
    event_id = re.findall(r'name="event_id" value="([^"]+)"', _page(admin, _at(stripe)))[0]
    with serving(tmp_path / "web.log") as web:
        settings.RELIABILITY_BASE_URL = f"http://127.0.0.1:{web.port}"
        asked = {"event_id": event_id}
        first = unescape(admin.post(_at(stripe, "test/"), asked, follow=True).content.decode())
        second = unescape(
            admin.post(_at(stripe, "test/"), asked, follow=True).content.decode()
        )
        web.assert_quiet()
    assert 'The door answered 200 {"status": "accepted"' in first
    assert f'<a href="/trace/?find={event_id}">See its trace</a>' in first
    assert '"status": "duplicate"' in second
    key = ProcessedKey.objects.get()
    assert (key.key, key.kind, key.source) == (event_id, "reliability.test", stripe)
    drain("local")
    story = _page(admin, f"/trace/?find={event_id}")
    assert "reliability.test" in story
    assert "stripe-live" in story
    assert Job.objects.get().state == "done"
    assert _acts() == [("send test event", "stripe-live", "")]
    assert json.dumps(AuditEntry.objects.get().facts) == json.dumps({"key": event_id})
