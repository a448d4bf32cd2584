"""What an operator does with dead letters: what they saw is what they act on."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from reliability.models import AuditEntry, DeadLetter, Job, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "operator", "n.okafor"))


def _page(client: Client, letter: DeadLetter) -> str:
    return client.get(f"/dead-letters/{letter.public_id}/").content.decode()


def _act(client: Client, letter: DeadLetter, act: str, **data: Any) -> str:
    address = f"/dead-letters/{letter.public_id}/{act}/"
    answer = client.post(address, {"version": 1, **data}, follow=True)
    return answer.content.decode()


def test_a_requeue_starts_in_ten_seconds_and_its_page_offers_the_undo(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    shown = _act(operator, letter, "requeue")
    assert "<strong>Requeued.</strong> Starts in" in shown
    assert f"/dead-letters/{letter.public_id}/undo/" in shown
    job = Job.objects.get()
    assert job.state == "ready"
    assert timedelta(seconds=5) < job.run_at - timezone.now() <= timedelta(seconds=10)


def test_an_undo_leaves_the_letter_as_it_was(acme: Tenant, operator: Client) -> None:
    letter = rows.letter(rows.source(acme))
    _act(operator, letter, "requeue")
    shown = _act(operator, letter, "undo", version=2)
    assert "Starts in" not in shown
    letter.refresh_from_db()
    assert (letter.status, letter.job.round) == ("open", 1)
    assert Job.objects.get().state == "dead"


def test_a_second_click_requeues_nothing_and_is_told_who_was_first(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    colleague = rows.signed_in(rows.member(acme, "operator", "m.keller"))
    _act(colleague, letter, "requeue")
    shown = _act(operator, letter, "requeue")
    assert "Not requeued" in shown
    assert "m.keller was first" in shown
    assert Job.objects.get().round == 2
    assert AuditEntry.objects.count() == 1


def test_a_stale_selection_moves_only_what_is_still_as_it_was_seen(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    first, second = rows.letter(stripe), rows.letter(stripe)
    _act(operator, first, "requeue")
    ticked = [f"{letter.public_id}:1" for letter in (first, second)]
    answer = operator.post("/dead-letters/requeue/", {"letter": ticked}, follow=True)
    shown = answer.content.decode()
    assert "Requeued 1." in shown
    assert f"DL-{first.pk}: n.okafor was first" in shown
    assert set(Job.objects.values_list("round", flat=True)) == {2}
    assert AuditEntry.objects.count() == 2


def test_a_preview_says_what_would_happen_and_changes_nothing(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    runs = rows.letter(stripe, amount_minor=1840, currency="EUR", exponent=2)
    closed = rows.letter(stripe, work={"not_after": timezone.now() - timedelta(hours=1)})
    gone = rows.letter(stripe, status="discarded", closed_by="m.keller")
    ticked = [f"{letter.public_id}:1" for letter in (runs, closed, gone)]
    answer = operator.post("/dead-letters/requeue/preview/", {"letter": ticked})
    shown = answer.content.decode()
    assert "3 letters were ticked. 1 would run: €18.40 at risk." in shown
    assert "window closed" in shown
    assert "discarded by m.keller" in shown
    assert "Requeue 1</button>" in shown
    assert shown.count('name="letter"') == 1
    assert not AuditEntry.objects.exists()


def test_an_act_on_a_selection_comes_back_to_the_filtered_list(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    data = {"letter": f"{letter.public_id}:1", "back": "source=stripe-live&rounds=1"}
    answer = operator.post("/dead-letters/requeue/", data)
    assert answer.headers["Location"] == "/dead-letters/?source=stripe-live&rounds=1"


@pytest.mark.parametrize("back", ["//evil.example/", "sauce=x", "source=%00", "after=1&x=y"])
def test_a_garbled_way_back_leads_to_the_list_and_nowhere_else(
    acme: Tenant, operator: Client, back: str
) -> None:
    letter = rows.letter(rows.source(acme))
    data = {"letter": f"{letter.public_id}:1", "back": back}
    answer = operator.post("/dead-letters/requeue/", data)
    assert answer.headers["Location"] == "/dead-letters/"


def test_a_discard_needs_a_reason_and_can_be_taken_back(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    assert "needs a reason" in _act(operator, letter, "discard", reason="  ")
    assert Job.objects.get().state == "dead"
    shown = _act(operator, letter, "discard", reason="booked by hand, FIN-208")
    assert "booked by hand, FIN-208" in shown
    assert Job.objects.get().state == "discarded"
    _act(operator, letter, "restore", version=2)
    assert Job.objects.get().state == "dead"
    acts = AuditEntry.objects.order_by("number").values_list("act", "actor", "reason")
    assert list(acts) == [
        ("discard", "n.okafor", "booked by hand, FIN-208"),
        ("restore", "n.okafor", ""),
    ]


def test_a_letter_is_resolved_only_by_saying_how_that_is_known(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    assert "Say how it is known" in _act(operator, letter, "resolve")
    shown = _act(operator, letter, "resolve", reason="ledger entry 90412")
    assert "ledger entry 90412" in shown
    assert Job.objects.get().state == "resolved"


def test_a_discard_of_a_selection_needs_a_reason_too(acme: Tenant, operator: Client) -> None:
    letter = rows.letter(rows.source(acme))
    ticked = {"letter": f"{letter.public_id}:1"}
    assert operator.post("/dead-letters/discard/", ticked).status_code == 400
    answer = operator.post("/dead-letters/discard/", ticked | {"reason": "test data"})
    assert answer.status_code == 302
    assert Job.objects.get().state == "discarded"


@pytest.mark.parametrize("ticked", [[], ["x"], ["no-uuid:1"], [":"]])
@pytest.mark.parametrize("act", ["requeue/", "discard/", "requeue/preview/"])
def test_a_selection_that_cannot_be_read_is_refused(
    operator: Client, act: str, ticked: list[str]
) -> None:
    data = {"letter": ticked, "reason": "why"}
    assert operator.post(f"/dead-letters/{act}", data).status_code == 400


def test_more_letters_than_one_act_takes_are_refused(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    ticked = [f"{rows.letter(stripe).public_id}:1" for _ in range(3)]
    monkeypatch.setattr("reliability.console.choices.conf", lambda: _Few)
    assert operator.post("/dead-letters/requeue/", {"letter": ticked}).status_code == 400
    assert set(Job.objects.values_list("state", flat=True)) == {"dead"}


class _Few:
    selection_max = 2


def test_an_act_without_the_version_seen_is_refused(acme: Tenant, operator: Client) -> None:
    letter = rows.letter(rows.source(acme))
    address = f"/dead-letters/{letter.public_id}/requeue/"
    assert operator.post(address, {}).status_code == 400
    assert Job.objects.get().state == "dead"


def test_the_letter_page_counts_a_lost_start_apart(acme: Tenant, operator: Client) -> None:
    shown = _page(operator, rows.letter(rows.source(acme)))
    assert "round 1: 5 failed, 1 lost" in shown
    assert "Start 2 lost, its lease ran out" in shown


def test_personal_data_is_kept_back_until_a_reason_is_on_record(
    acme: Tenant, operator: Client
) -> None:
    body = b'{"email": "jo@customer.example", "note": "card 4242 4242 4242 4242"}'
    letter = rows.letter(rows.source(acme), claimed={"raw": body})
    shown = _page(operator, letter)
    assert "jo@customer.example" not in shown
    assert "4242 4242" not in shown
    assert "redacted: e-mail" in shown
    assert "needs a reason" in _act(operator, letter, "reveal", reason="")
    assert "jo@customer.example" not in _page(operator, letter)
    assert "jo@customer.example" in _act(operator, letter, "reveal", reason="INC-3107")
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.reason, entry.actor) == ("reveal payload", "INC-3107", "n.okafor")
    assert entry.about_id == str(letter.public_id)


def test_a_revealed_payload_is_kept_back_again_after_ten_minutes(
    acme: Tenant, operator: Client, time_machine: Any
) -> None:
    time_machine.move_to(rows.NOON, tick=False)
    letter = rows.letter(
        rows.source(acme), claimed={"raw": b'{"email": "jo@customer.example"}'}
    )
    other = rows.letter(rows.source(acme, "b"), claimed={"raw": b'{"email": "al@x.example"}'})
    _act(operator, letter, "reveal", reason="INC-3107")
    time_machine.shift(timedelta(minutes=9, seconds=59))
    assert "jo@customer.example" in _page(operator, letter)
    assert "al@x.example" not in _page(operator, other)
    time_machine.shift(timedelta(seconds=1))
    assert "jo@customer.example" not in _page(operator, letter)


CANARIES = [
    "jo@customer.example", "4242 4242 4242 4242", "4242424242424242",
    "DE89 3704 0044 0532 0130 00", "sk_live_51H8abcdefghijk",
]  # fmt: skip


@pytest.mark.parametrize("canary", CANARIES)
def test_a_viewer_meets_personal_data_on_no_page(acme: Tenant, canary: str) -> None:
    letter = rows.letter(
        rows.source(acme),
        message=f"refused for {canary}",
        reason=f"refused for {canary}",
        claimed={"raw": b'{"note": "%s"}' % canary.encode()},
    )
    client = rows.signed_in(rows.member(acme, "viewer"))
    for address in (
        "/dead-letters/",
        f"/dead-letters/{letter.public_id}/",
        f"/trace/?find={letter.job.key.key}",
        "/",
    ):
        assert canary not in client.get(address).content.decode(), address


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre><svg onload=alert(1)>",
    "{{ 7|add:7 }}{% now 'Y' %}",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(acme: Tenant, operator: Client, text: str) -> None:
    letter = rows.letter(
        rows.source(acme),
        text,
        error_type=text,
        message=text,
        reason=text,
        claimed={"kind": text, "raw": text.encode()},
    )
    for address in (
        "/dead-letters/",
        f"/dead-letters/{letter.public_id}/",
        f"/trace/?find={letter.public_id}",
        "/jobs/",
        "/deliveries/",
    ):
        shown = operator.get(address).content.decode()
        assert escape(text) in shown, address
        if escape(text) != text:
            assert text not in shown, address
