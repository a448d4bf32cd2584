"""Events sent on: byte for byte, under one key, signed; and what each answer leads to."""

import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import standardwebhooks
from django.db import connection
from django.test import Client
from django.utils import timezone

from reliability.errors import AddressRefused, JobInterrupted
from reliability.models import Attempt, DeadLetter, Destination, DestinationAnswer, Job, Source
from reliability.outbound import Guard
from reliability.outbound import client as outbound_client
from reliability.outbound.signing import new_secret
from reliability.work import destinations
from reliability.work.complete import AlreadyDone, Completed, NotExpected, complete
from reliability.work.rescue import lost, take_back
from tests.database import senders, world
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

BODY = b'{ "id" : "evt_1", "type":"invoice.paid","amount": 1.10 }'


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    allow_loopback(monkeypatch)
    settings.RELIABILITY_BASE_URL = "https://ours.example"
    monkeypatch.setattr(destinations, "KEPT_SECONDS", 0.0)
    destinations.forget()


class Shop:
    """A destination that answers as told, at once or by looking at the request."""

    def __init__(self) -> None:
        self.says: Says | Callable[[Heard], Says] = Says(200, b"thanks")

    def __call__(self, heard: Heard) -> Says:
        return self.says if isinstance(self.says, Says) else self.says(heard)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def there(shop: Shop) -> Iterator[Elsewhere]:
    with serving(shop) as place:
        yield place


def destination(url: str, **columns: Any) -> Destination:
    made = Destination(tenant=world.tenant(), slug="shop", url=url, **columns)
    made.seal(new_secret())
    made.save()
    return made


def source(at: Destination) -> Source:
    return senders.source("stripe", destination=at)


def deliver(at: Source, body: bytes = BODY) -> None:
    headers = senders.sign("stripe", body) | {"Cookie": "a=b", "Authorization": "Basic x"}
    answer = Client().generic(
        "POST", f"/hooks/{at.endpoint_token}/", body, "application/json", headers=headers
    )
    assert answer.status_code == 200


def test_an_event_arrives_byte_for_byte_under_its_key_and_signed(there: Elsewhere) -> None:
    at = destination(f"{there.url}/in?x=1")
    deliver(source(at))
    world.work_outside()
    job = Job.objects.get()
    assert (job.state, job.result) == ("done", {"status": 200, "text": "thanks"})
    [heard] = there.heard
    assert (heard.method, heard.path, heard.body) == ("POST", "/in?x=1", BODY)
    assert heard.headers["idempotency-key"] == job.key.downstream_key
    assert (
        heard.headers["reliability-job"] == f"https://ours.example/api/v1/jobs/{job.public_id}"
    )
    verified = standardwebhooks.Webhook(at.open()).verify(heard.body, dict(heard.headers))
    assert verified["id"] == "evt_1"


def test_no_header_goes_on_but_these(there: Elsewhere) -> None:
    deliver(source(destination(there.url)))
    world.work_outside()
    assert set(there.heard[0].headers) == {
        "host", "accept-encoding", "content-length", "content-type", "user-agent",
        "idempotency-key", "reliability-job", "reliability-round", "webhook-id",
        "webhook-timestamp", "webhook-signature",
    }  # fmt: skip


def test_every_attempt_shows_the_same_key(shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(500)
    deliver(source(destination(there.url)))
    for _ in range(3):
        world.work_outside()
        world.make_due(Job.objects.get())
    assert len(there.heard) == 3
    assert len({heard.headers["idempotency-key"] for heard in there.heard}) == 1
    assert len({heard.headers["webhook-id"] for heard in there.heard}) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 599])
def test_these_answers_are_tried_again(status: int, shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(status)
    deliver(source(destination(there.url)))
    world.work_outside()
    assert (Job.objects.get().state, DeadLetter.objects.count()) == ("ready", 0)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.message) == ("failed", f"shop answered {status}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 301, 302, 307])
def test_these_answers_are_letters_at_once(status: int, shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(status, headers={"Location": "http://169.254.169.254/"})
    deliver(source(destination(there.url)))
    world.work_outside()
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.message) == ("failed", f"shop answered {status}")
    assert len(there.heard) == 1


def test_a_destination_may_have_rules_of_its_own(shop: Shop, there: Elsewhere) -> None:
    at = destination(there.url, rules={"404": "retry", "500": "bury", "409": "done"})
    for number, status in enumerate((404, 500, 409)):
        # One that waits by chance could be due again before the next is sent.
        shop.says = Says(status, headers={"Retry-After": "60"})
        deliver(Source.objects.first() or source(at), b'{"id":"evt_%d","type":"t"}' % number)
        world.work_outside()
    states = Job.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["ready", "dead", "done"]


def test_retry_after_is_honoured(shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(503, headers={"Retry-After": "600"})
    deliver(source(destination(there.url)))
    before = timezone.now()
    world.work_outside()
    assert Job.objects.get().run_at - before >= timedelta(seconds=599)


def test_the_answer_is_kept_as_bytes_and_shown_as_text(shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(200, b"<script>alert(1)</script>\xff" + b"x" * 100_000)
    deliver(source(destination(there.url)))
    world.work_outside()
    kept = DestinationAnswer.objects.get()
    assert (kept.status, kept.size_bytes, kept.cut) == (200, 65_536, True)
    assert kept.text(27) == "<script>alert(1)</script>\N{REPLACEMENT CHARACTER}x"
    assert Job.objects.get().state == "done"


def test_an_address_that_may_not_be_asked_is_a_letter(
    there: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(source(destination(there.url)))
    monkeypatch.setattr(outbound_client, "guard", Guard)
    world.work_outside()
    assert there.heard == []
    assert "may not be asked" in DeadLetter.objects.get().message


def test_a_destination_that_does_not_answer_is_tried_again() -> None:
    deliver(source(destination("http://127.0.0.1:1/")))
    world.work_outside()
    assert Job.objects.get().state == "ready"
    assert Attempt.objects.get().error_type == "NoAnswer"


# 202 and the report


def accepted(heard: Heard) -> Says:
    return Says(202, headers={"Location": heard.headers["reliability-job"]})


def test_a_202_that_points_back_is_done_when_it_is_reported(
    shop: Shop, there: Elsewhere
) -> None:
    shop.says = accepted
    deliver(source(destination(there.url, completion_seconds=600)))
    world.work_outside()
    job = Job.objects.get()
    assert (job.state, job.worker) == ("running", "deferred")
    assert job.lease_expires_at
    assert job.lease_expires_at - timezone.now() > timedelta(seconds=590)
    assert complete(job.public_id, world.tenant(), {"order": 7}) == Completed()
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"reported": {"order": 7}})
    assert complete(job.public_id, world.tenant(), None) == AlreadyDone()
    assert Attempt.objects.get().outcome == "done"


def test_a_202_that_points_elsewhere_is_done(shop: Shop, there: Elsewhere) -> None:
    shop.says = Says(202, headers={"Location": "https://shop.example/orders/7"})
    deliver(source(destination(there.url)))
    world.work_outside()
    assert Job.objects.get().state == "done"


def test_without_a_report_before_the_deadline_the_event_is_sent_again(
    shop: Shop, there: Elsewhere
) -> None:
    shop.says = accepted
    deliver(source(destination(there.url)))
    world.work_outside()
    world.end_lease(Job.objects.get())
    take_back(lost(10))
    job = Job.objects.get()
    assert job.state == "ready"
    assert complete(job.public_id, world.tenant(), "late") == Completed()
    assert Job.objects.get().state == "done"


def test_a_report_cannot_be_made_for_another_tenant_or_a_job_that_was_not_sent(
    shop: Shop, there: Elsewhere
) -> None:
    shop.says = Says(500)
    deliver(source(destination(there.url)))
    job = Job.objects.get()
    assert complete(job.public_id, world.tenant("borealis"), None) is None
    assert complete(job.public_id, world.tenant(), None) == NotExpected("ready")


# Slots and the breaker


def test_five_failures_in_a_row_open_the_breaker_and_one_success_closes_it(
    shop: Shop, there: Elsewhere
) -> None:
    shop.says = Says(500)
    at = source(destination(there.url))
    for number in range(8):
        deliver(at, b'{"id":"evt_%d","type":"t"}' % number)
    for _ in range(8):
        world.work_one_outside()
    assert len(there.heard) == 5
    assert Job.objects.filter(starts=0).count() == 3
    Destination.objects.update(open_until=timezone.now())
    shop.says = Says(200)
    world.work_one_outside()
    assert len(there.heard) == 6
    at_rest = Destination.objects.get()
    assert (at_rest.failures, at_rest.open_until) == (0, None)
    world.work_outside()
    assert Job.objects.filter(state="done", starts=1).count() == 3


def test_while_the_breaker_is_half_open_one_request_tries_and_the_others_go_back(
    shop: Shop, there: Elsewhere
) -> None:
    at = destination(there.url, failures=5, open_until=timezone.now())
    shop.says = Says(500)
    for number in range(3):
        deliver(
            source(at) if number == 0 else Source.objects.get(),
            b'{"id":"%d","type":"t"}' % number,
        )
    world.work_outside()
    assert len(there.heard) == 1
    released = Attempt.objects.filter(outcome="released").count()
    assert (released, Job.objects.filter(state="ready").count()) == (2, 3)


def test_no_more_requests_are_under_way_than_the_destination_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = destination("http://127.0.0.1:1/", concurrency_max=2)
    monkeypatch.setattr(destinations, "SLOT_SECONDS", 0.0)
    taken, leave = threading.Barrier(3), threading.Event()

    def hold() -> None:
        with destinations.slot(at):
            taken.wait(10)
            leave.wait(10)
        connection.close()

    others = [threading.Thread(target=hold) for _ in range(2)]
    for thread in others:
        thread.start()
    taken.wait(10)
    with pytest.raises(JobInterrupted, match="busy"), destinations.slot(at):
        pytest.fail("a third slot of two")
    leave.set()
    for thread in others:
        thread.join()
    with destinations.slot(at):
        pass


def test_a_full_destination_bars_its_sources_and_a_deferred_job_fills_no_slot(
    shop: Shop, there: Elsewhere
) -> None:
    at = source(destination(there.url, concurrency_max=1))
    deliver(at)
    deliver(at, b'{"id":"evt_2","type":"t"}')
    [leased] = world.take_outside(1)
    assert destinations.barred() == [at.pk]
    assert world.take_outside(1) == []
    Job.objects.filter(pk=leased.id).update(worker=destinations.DEFERRED)
    assert destinations.barred() == []


def test_a_url_that_may_not_be_asked_cannot_be_saved() -> None:
    with pytest.raises(AddressRefused):
        outbound_client.check("https://10.0.0.1/", Guard())


def test_an_own_key_that_is_no_header_goes_downstream_as_a_uuid(there: Elsewhere) -> None:
    deliver(source(destination(there.url)))
    key = Job.objects.get().key
    type(key).objects.update(downstream_key="schlüssel\u2028")
    world.work_outside()
    sent = there.heard[0].headers["idempotency-key"]
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sent)
    assert sent == there.heard[0].headers["webhook-id"]
