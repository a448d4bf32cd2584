"""Destinations in the console: what is shown, what stays secret, and what is refused."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability.models import (
    AuditEntry,
    Destination,
    DestinationAnswer,
    Job,
    Source,
    Tenant,
)
from tests.console import rows

pytestmark = pytest.mark.django_db

PUBLIC = "https://93.184.216.34/hook/s3cret"


@pytest.fixture
def admin(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "admin"))


def _page(client: Client, one: Destination) -> str:
    return client.get(f"/destinations/{one.public_id}/").content.decode()


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def _answer(job: Job, body: bytes, status: int = 503, *, cut: bool = False) -> None:
    DestinationAnswer.objects.create(
        tenant=job.tenant, job=job, token=1, status=status, size_bytes=len(body), cut=cut,
        body=body, sha256=hashlib.sha256(body).digest(), at=timezone.now(),
    )  # fmt: skip


def _forwarded(of: Source, state: str = "ready", **more: Any) -> Job:
    return rows.job(rows.key(of, kind="forward"), state, queue="outside", **more)


# What is shown


def test_no_page_shows_more_of_a_url_than_its_host(admin: Client, stripe: Source) -> None:
    one = rows.destination(stripe)
    for shown in (_page(admin, one), admin.get("/destinations/").content.decode()):
        assert "https://crm.example" in shown
        assert "s3cret" not in shown
        assert "c2VjcmV0" not in shown
    assert "ends in cmV0" in _plain(_page(admin, one))


def test_a_breaker_is_closed_open_or_lets_one_request_try(
    viewer: Client, stripe: Source
) -> None:
    one = rows.destination(stripe)
    assert "closed" in _plain(_page(viewer, one))
    rows_of = Destination.objects.filter(pk=one.pk)
    rows_of.update(failures=5, open_until=timezone.now() + timedelta(minutes=1))
    assert "open; 5 failures in a row" in _plain(_page(viewer, one))
    assert "keep failing: crm-stripe-live" in _plain(
        viewer.get("/destinations/").content.decode()
    )
    rows_of.update(open_until=timezone.now() - timedelta(seconds=1))
    assert "the next request tries; 5 failures in a row" in _plain(_page(viewer, one))


def test_the_last_days_ends_are_links_to_exactly_their_jobs(
    viewer: Client, stripe: Source
) -> None:
    one, now = rows.destination(stripe), timezone.now()
    for hours in (1, 2, 30):
        _forwarded(stripe, "done", ended_at=now - timedelta(hours=hours))
    rows.job(rows.key(stripe), "done", ended_at=now)
    _forwarded(stripe, "dead", ended_at=now)
    _forwarded(stripe)
    other = rows.source(stripe.tenant, "other")
    rows.destination(other)
    _forwarded(other, "done", ended_at=now)
    page = _page(viewer, one)
    found = re.findall(
        r'<dt>([^<]+)</dt><dd><a[^>]* href="([^"]+ended_after[^"]+)">(\d+)<', page
    )
    assert [(int(n), word) for word, _, n in found] == [
        (2, "done"), (1, "dead letter"), (0, "discarded"), (0, "resolved"),
    ]  # fmt: skip
    for _, href, count in found:
        listed = viewer.get(href.replace("&amp;", "&")).content.decode()
        assert listed.count('<th scope="row" data-lead>') == int(count), href


def test_what_waits_is_counted_per_source_and_linked(viewer: Client, stripe: Source) -> None:
    one = rows.destination(stripe)
    _forwarded(stripe)
    _forwarded(stripe)
    rows.letter(stripe, kind="forward", claimed={"kind": "forward"})
    page = _page(viewer, one)
    ready = re.search(r'<a[^>]* href="([^"]+state=ready)">2</a>', page)
    letters = re.search(r'<a[^>]* href="(/dead-letters/[^"]+)">1</a>', page)
    assert ready is not None
    assert letters is not None
    for match, count in ((ready, 2), (letters, 1)):
        listed = viewer.get(match[1].replace("&amp;", "&")).content.decode()
        assert listed.count('<th scope="row" data-lead>') == count


def test_an_answer_is_text_and_says_that_it_was_cut(viewer: Client, stripe: Source) -> None:
    one = rows.destination(stripe)
    _answer(_forwarded(stripe), b"<script>alert(1)</script> mail ann@example.com", cut=True)
    page = _page(viewer, one)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "ann@example.com" not in page
    assert "503" in page
    assert "46 bytes kept, cut at 64 KB" in _plain(page)


def test_the_letter_and_the_trace_show_what_the_destination_answered(
    viewer: Client, stripe: Source
) -> None:
    rows.destination(stripe)
    letter = rows.letter(stripe, "evt_sent", kind="forward", claimed={"kind": "forward"})
    _answer(letter.job, b"<b>no such shop</b>", status=404)
    for address in (f"/dead-letters/{letter.public_id}/", "/trace/?find=evt_sent"):
        shown = viewer.get(address).content.decode()
        assert "What the destination answered" in shown
        assert "&lt;b&gt;no such shop" in shown
        assert "404" in shown


def test_another_tenants_answers_are_not_shown(viewer: Client, stripe: Source) -> None:
    one = rows.destination(stripe)
    globex = rows.source(rows.tenant("globex"))
    rows.destination(globex)
    _answer(_forwarded(globex), b"theirs")
    assert "theirs" not in _page(viewer, one)
    assert "It has answered nothing" in _page(viewer, one)


# Adding and changing


def _add(client: Client, **more: str) -> Any:
    sent = {"slug": "crm", "url": PUBLIC, "concurrency": "3", "completion": "600"} | more
    return client.post("/destinations/add/", sent)


def test_an_admin_adds_a_destination_and_sees_its_secret_once(
    admin: Client, acme: Tenant
) -> None:
    answer = _add(admin, rules="404=retry")
    made = Destination.objects.get()
    assert (made.tenant, made.url, made.concurrency_max) == (acme, PUBLIC, 3)
    assert made.rules == {"404": "retry"}
    assert made.open() in answer.content.decode()
    assert made.open() not in _page(admin, made)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.about_id, entry.actor) == ("add destination", "crm", "admin-acme")
    assert "s3cret" not in str(entry.facts)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"url": "https://127.0.0.1/"}, "https://127.0.0.1 cannot be a destination: 127.0.0.1 has an address that is not public"),
        ({"url": "https://169.254.169.254/latest/meta-data"}, "has an address that is not public"),
        ({"url": "http://93.184.216.34/"}, "plain http is not allowed: use https"),
        ({"url": "ftp://93.184.216.34/"}, "only http:// and https:// URLs with a host"),
        ({"slug": "no good"}, "cannot name a destination"),
        ({"rules": "404=perhaps"}, "say done, retry or bury"),
        ({"concurrency": "65"}, "Requests at once must be 1 to 64, not 65."),
    ],
)  # fmt: skip
def test_what_cannot_be_a_destination_is_refused_with_its_reason_and_not_saved(
    admin: Client, wrong: dict[str, str], why: str
) -> None:
    answer = _add(admin, **wrong)
    assert answer.status_code == 400
    assert why in answer.content.decode().replace("&#x27;", "'")
    assert "Nothing was saved." in answer.content.decode()
    assert Destination.objects.count() == 0
    assert AuditEntry.objects.count() == 0


def test_a_name_is_taken_once(admin: Client) -> None:
    _add(admin)
    assert _add(admin).status_code == 400
    assert Destination.objects.count() == 1


def _change(client: Client, one: Destination, **more: str) -> int:
    sent = {"url": "", "concurrency": "8", "completion": "3600", "rules": ""} | more
    return client.post(f"/destinations/{one.public_id}/change/", sent).status_code


def test_an_admin_moves_a_destination_and_its_breaker_starts_closed(
    admin: Client, stripe: Source
) -> None:
    one = rows.destination(stripe, failures=7, open_until=timezone.now())
    assert _change(admin, one, url=PUBLIC, concurrency="2") == 302
    one.refresh_from_db()
    assert (one.url, one.concurrency_max, one.failures, one.open_until) == (PUBLIC, 2, 0, None)
    assert AuditEntry.objects.get().act == "change destination"


def test_a_destination_is_not_moved_inside(admin: Client, stripe: Source) -> None:
    one = rows.destination(stripe)
    assert _change(admin, one, url="https://10.0.0.7/") == 400
    one.refresh_from_db()
    assert one.url == "https://crm.example/hook/s3cret"
    assert AuditEntry.objects.count() == 0


def test_saving_what_is_so_already_is_no_act(admin: Client, stripe: Source) -> None:
    one = rows.destination(stripe, url=PUBLIC)
    assert _change(admin, one) == 302
    assert AuditEntry.objects.count() == 0


def test_an_operator_may_pause_but_neither_add_nor_change(
    operator: Client, stripe: Source
) -> None:
    one = rows.destination(stripe)
    assert _add(operator).status_code == 403
    assert _change(operator, one, url=PUBLIC) == 403
    assert "New destination" not in operator.get("/destinations/").content.decode()
    assert "change/" not in _page(operator, one)
    assert "pause/" in _page(operator, one)


# Pause and resume


def _pause(client: Client, one: Destination, verb: str = "pause", reason: str = "down") -> int:
    address = f"/destinations/{one.public_id}/{verb}/"
    return client.post(address, {"reason": reason}).status_code


def test_a_paused_destination_holds_its_jobs_and_is_seen_everywhere(
    operator: Client, stripe: Source
) -> None:
    one, job = rows.destination(stripe), _forwarded(stripe)
    assert _pause(operator, one) == 302
    assert _pause(operator, one, reason="again") == 302
    job.refresh_from_db()
    assert job.held == "paused"
    for address in ("/", "/destinations/", f"/destinations/{one.public_id}/"):
        shown = _plain(operator.get(address).content.decode())
        assert "crm-stripe-live" in shown
        assert "operator-acme" in shown
        assert "down" in shown
    assert _pause(operator, one, "resume") == 302
    job.refresh_from_db()
    assert job.held == ""
    told = list(AuditEntry.objects.values_list("act", "reason"))
    assert told == [("pause destination", "down"), ("unpause destination", "down")]


def test_a_pause_needs_a_reason_and_an_operator(
    operator: Client, viewer: Client, stripe: Source
) -> None:
    one = rows.destination(stripe)
    assert _pause(operator, one, reason=" ") == 400
    assert _pause(viewer, one) == 403
    assert "pause/" not in _page(viewer, one)
    one.refresh_from_db()
    assert one.paused_at is None


def test_nothing_at_all_is_said_as_such(viewer: Client) -> None:
    assert "No destination" in viewer.get("/destinations/").content.decode()
