"""A delivery of many events: all verified, one transaction, each event its own fate."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from reliability.handlers import Event
from reliability.models import DeadLetter, Delivery, Job, ProcessedKey, Receipt, Source
from reliability.policy import Backoff, RunOnce
from reliability.work.drain import drain
from tests.database import senders, world

pytestmark = pytest.mark.django_db


def nothing(event: Event) -> None: ...


def deliver(source: Source, body: bytes, **headers: str) -> HttpResponse:
    signed = senders.sign(source.scheme, body) | headers
    return Client().post(  # type: ignore[return-value]
        f"/hooks/{source.endpoint_token}/", body, "application/json", headers=signed
    )


def paid(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"EV{number}", "resource_type": "payments", "action": "confirmed",
            "created_at": "2099-01-01T00:00:00Z", "links": {"payment": f"PM{number}"}} | more  # fmt: skip


def item(reference: str, **more: Any) -> dict[str, Any]:
    return {"pspReference": reference, "merchantAccountCode": "Ours", "merchantReference": "o:1",
            "amount": {"value": 1000, "currency": "EUR"}, "eventCode": "CAPTURE",
            "success": "true", "eventDate": "2099-01-01T00:00:00+00:00"} | more  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_one_poison_event_of_250_leaves_249_done_and_one_letter() -> None:
    def handle(event: Event) -> None:
        if event.key == "EV117":
            raise ValueError("this one cannot be worked")

    source = senders.source("gocardless")
    twice = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=2)
    with world.local("gocardless.payments.confirmed", handle, policy=twice):
        answer = deliver(source, senders.gocardless(*map(paid, range(250))))
        assert (answer.status_code, json.loads(answer.content)["events"]) == (200, 250)
        drain("local")
        world.make_due(Job.objects.get(key__key="EV117"))
        drain("local")
    assert Job.objects.filter(state="done").count() == 249
    assert DeadLetter.objects.get().job.key.key == "EV117"
    assert (Delivery.objects.count(), Receipt.objects.count()) == (1, 250)


def test_a_batch_sent_again_is_answered_duplicate_and_adds_no_job() -> None:
    source = senders.source("gocardless")
    with world.local("gocardless.payments.confirmed", nothing):
        deliver(source, senders.gocardless(paid(1), paid(2)))
        answer = deliver(source, senders.gocardless(paid(2), paid(1), paid(3)))
    assert (answer.status_code, json.loads(answer.content)["status"]) == (200, "accepted")
    assert sorted(Receipt.objects.values_list("key__key", "verdict")) == [
        ("EV1", "accepted"), ("EV1", "duplicate"), ("EV2", "accepted"), ("EV2", "duplicate"),
        ("EV3", "accepted"),
    ]  # fmt: skip
    assert Job.objects.count() == 3


def test_an_event_without_an_id_is_a_letter_and_its_neighbours_are_taken_in() -> None:
    source = senders.source("gocardless")
    with world.local("gocardless.payments.confirmed", nothing):
        answer = deliver(source, senders.gocardless(paid(1), {"no": "id"}, paid(2)))
    assert answer.status_code == 200
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.reason) == ("unparseable", "no event id")
    assert bytes(letter.job.key.bodies.get().raw) == b'{"no": "id"}'
    ready = Job.objects.filter(state="ready").values_list("key__key", flat=True)
    assert sorted(ready) == ["EV1", "EV2"]


def test_each_event_of_a_batch_keeps_its_own_bytes() -> None:
    source = senders.source("gocardless")
    with world.local("gocardless.payments.confirmed", nothing):
        deliver(source, senders.gocardless(paid(1), paid(2)))
    key = ProcessedKey.objects.get(key="EV2")
    assert json.loads(bytes(key.bodies.get().raw)) == paid(2)


def test_more_than_250_events_are_one_letter_with_the_whole_body() -> None:
    source = senders.source("gocardless")
    body = senders.gocardless(*map(paid, range(251)))
    assert deliver(source, body).status_code == 200
    assert bytes(DeadLetter.objects.get().job.key.bodies.get().raw) == body


def test_gocardless_is_told_498_when_the_signature_is_wrong() -> None:
    source = senders.source("gocardless")
    answer = deliver(source, senders.gocardless(paid(1)), **{"Webhook-Signature": "00" * 32})
    assert answer.status_code == 498
    assert ProcessedKey.objects.count() == 0


def test_adyen_is_told_accepted_in_its_own_words_for_first_and_repeated_items() -> None:
    source = senders.source("adyen")
    with world.kind("adyen.CAPTURE", nothing, policy=RunOnce()):
        for _ in range(2):
            answer = deliver(source, senders.adyen(item("P1"), item("P2")))
            assert (answer.status_code, answer.content) == (202, b"[accepted]")
    assert sorted(ProcessedKey.objects.values_list("key", flat=True)) == [
        '["P1","CAPTURE","true"]', '["P2","CAPTURE","true"]',
    ]  # fmt: skip
    assert Delivery.objects.filter(answer=202).count() == 2


def test_a_forged_second_item_keeps_the_first_one_out_as_well() -> None:
    source = senders.source("adyen")
    forged = senders.signed_item(item("P2")) | {"pspReference": "P3"}
    wrapped = [
        {"NotificationRequestItem": one} for one in (senders.signed_item(item("P1")), forged)
    ]
    answer = deliver(source, json.dumps({"notificationItems": wrapped}).encode())
    assert answer.status_code == 401
    assert ProcessedKey.objects.count() == 0
