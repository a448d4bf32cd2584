"""The door: authenticated and stored means 2xx; everything else has its own answer."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability.claim import door, refusals, webhook
from reliability.claim.door import backstop
from reliability.handlers import Event
from reliability.models import (
    Body,
    DeadLetter,
    Delivery,
    Job,
    ProcessedKey,
    Receipt,
    Refusal,
    Source,
    SourceSecret,
)
from reliability.work.drain import drain
from tests.database import senders, world

pytestmark = pytest.mark.django_db


def nothing(event: Event) -> None: ...


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    door.forget()
    with world.local("stripe.charge.succeeded", nothing):
        yield
    door.forget()


def charge(key: str = "evt_1", **changes: Any) -> dict[str, Any]:
    thing = {
        "id": "ch_1", "object": "charge", "amount": 1000, "currency": "eur",
        "created": int(time.time()), "captured": True,
    } | changes  # fmt: skip
    return {
        "id": key, "object": "event", "type": "charge.succeeded",
        "created": int(time.time()), "data": {"object": thing},
    }  # fmt: skip


def stripe_signature(body: bytes, *, secret: str = world.SECRET, at: int | None = None) -> str:
    when = int(time.time()) if at is None else at
    signed = hmac.new(secret.encode(), f"{when}.".encode() + body, hashlib.sha256)
    return f"t={when},v1={signed.hexdigest()}"


def post(source: Source, body: bytes, **headers: Any) -> HttpResponse:
    return Client().generic(  # type: ignore[return-value]
        "POST", f"/hooks/{source.endpoint_token}/", body, "application/json", headers=headers
    )


def deliver(source: Source, payload: Any, *, raw: bytes | None = None) -> HttpResponse:
    body = json.dumps(payload).encode() if raw is None else raw
    return post(source, body, stripe_signature=stripe_signature(body))


def test_a_signed_event_is_accepted_with_its_bytes_its_operation_and_its_verdict() -> None:
    source = world.source()
    answer = deliver(source, charge())
    assert (answer.status_code, json.loads(answer.content)["status"]) == (200, "accepted")
    key = ProcessedKey.objects.get()
    assert (key.key, key.kind) == ("evt_1", "stripe.charge.succeeded")
    assert (key.operation.reference, key.operation.amount_minor) == ("ch_1", 1000)
    assert json.loads(bytes(key.bodies.get().raw))["id"] == "evt_1"
    delivery = Delivery.objects.get()
    assert (delivery.scheme, delivery.answer, delivery.secret_id) == (
        "stripe",
        200,
        SourceSecret.objects.get().pk,
    )


def test_a_redelivery_is_answered_duplicate_and_leaves_a_delivery_and_a_receipt() -> None:
    source = world.source()
    deliver(source, charge())
    answer = deliver(source, charge())
    assert (answer.status_code, json.loads(answer.content)["status"]) == (200, "duplicate")
    assert (Delivery.objects.count(), Job.objects.count()) == (2, 1)
    assert Receipt.objects.filter(verdict="duplicate").count() == 1
    drain("local")
    done_at = Job.objects.get().ended_at
    assert done_at is not None
    again = json.loads(deliver(source, charge()).content)
    assert (again["state"], again["done_on"]) == ("done", done_at.date().isoformat())


@pytest.mark.parametrize("path", ["/", ""])
def test_the_url_works_with_and_without_its_last_slash(path: str) -> None:
    source, body = world.source(), json.dumps(charge()).encode()
    answer = Client().post(
        f"/hooks/{source.endpoint_token}{path}", body, "application/json",
        headers={"stripe-signature": stripe_signature(body)},
    )  # fmt: skip
    assert answer.status_code == 200


# Signed when the test runs: one signed at collection would be refused for its age alone.
WRONG_SIGNATURES: dict[str, Callable[[], str]] = {
    "none": lambda: "",
    "short": lambda: "t=1,v1=00",
    "no number": lambda: "t=x,v1=ü",
    "another body": lambda: stripe_signature(b"another body"),
    "another secret": lambda: stripe_signature(b"{}", secret="whsec_b3RoZXI="),
    "too old": lambda: stripe_signature(b"{}", at=1),
}


@pytest.mark.parametrize("wrong", WRONG_SIGNATURES)
def test_a_wrong_signature_is_401_and_only_counted(wrong: str) -> None:
    source = world.source()
    answer = post(source, b"{}", stripe_signature=WRONG_SIGNATURES[wrong]())
    assert answer.status_code == 401
    assert b"signature" not in answer.content
    refusals.flush()
    refused = Refusal.objects.get()
    assert (refused.count, refused.last_size_bytes) == (1, 2)
    assert bytes(refused.last_sha256) == hashlib.sha256(b"{}").digest()
    assert (Delivery.objects.count(), Body.objects.count()) == (0, 0)


def test_a_thousand_refusals_are_one_row() -> None:
    source = world.source()
    for _ in range(1000):
        refusals.count(source, "signature wrong", body=b"x", peer=None)
    refusals.flush()
    assert [row.count for row in Refusal.objects.all()] == [1000]


def test_a_source_without_a_secret_lets_nobody_in() -> None:
    source = world.source()
    SourceSecret.objects.all().delete()
    assert deliver(source, charge()).status_code == 401


def test_the_previous_secret_is_good_until_its_expiry() -> None:
    source = world.source()
    soon = timezone.now() + timedelta(hours=1)
    SourceSecret.objects.rotate(source, "whsec_bmV3", overlap_until=soon)
    assert deliver(source, charge()).status_code == 200
    SourceSecret.objects.filter(expires_at__isnull=False).update(expires_at=timezone.now())
    door.forget()
    assert deliver(source, charge("evt_2")).status_code == 401


def test_an_empty_secret_cannot_be_saved() -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        SourceSecret.objects.rotate(world.source(), "", overlap_until=timezone.now())


def test_another_tenants_signature_is_worth_nothing_here() -> None:
    mine, theirs = world.source(of="acme"), world.source(of="borealis")
    SourceSecret.objects.rotate(theirs, "whsec_b3RoZXI=", overlap_until=timezone.now())
    body = json.dumps(charge()).encode()
    signed = stripe_signature(body, secret="whsec_b3RoZXI=")
    assert post(mine, body, stripe_signature=signed).status_code == 401


def test_an_unknown_token_is_404() -> None:
    assert Client().post("/hooks/nobody/", b"{}", "application/json").status_code == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
def test_another_method_is_405(method: str) -> None:
    answer = Client().generic(method, f"/hooks/{world.source().endpoint_token}/")
    assert answer.status_code == 405


def test_a_compressed_body_is_415() -> None:
    assert post(world.source(), b"{}", content_encoding="gzip").status_code == 415


def test_a_body_over_the_cap_is_413_and_not_read() -> None:
    source = world.source()
    Source.objects.update(body_bytes_max=10)
    assert deliver(source, charge()).status_code == 413


def test_a_chunked_body_is_411() -> None:
    answer = Client(CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked").post(
        f"/hooks/{world.source().endpoint_token}/", b"", "application/json"
    )
    assert answer.status_code == 411


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b'{"id":"a","id":"b"}', b"[" * 100_000])
def test_what_cannot_be_parsed_is_200_and_a_letter_with_its_bytes(raw: bytes) -> None:
    source = world.source()
    assert deliver(source, None, raw=raw).status_code == 200
    letter = DeadLetter.objects.get()
    assert letter.outcome == "unparseable"
    assert letter.job.key.key.startswith("delivery:")
    assert bytes(letter.job.key.bodies.get().raw) == raw


def test_a_type_nobody_handles_is_200_and_unroutable() -> None:
    source = world.source()
    payload = charge() | {"type": "invoice.paid"}
    assert deliver(source, payload).status_code == 200
    assert DeadLetter.objects.get().outcome == "unroutable"


def test_an_explicit_route_to_a_kind_no_worker_knows_is_held() -> None:
    source = world.source()
    Source.objects.update(routes={"invoice.paid": "billing.paid"})
    deliver(source, charge() | {"type": "invoice.paid"})
    job = Job.objects.get()
    assert (job.state, job.held, job.kind) == ("ready", "kind unknown", "billing.paid")


def test_an_event_from_before_our_memory_is_never_run_as_new() -> None:
    source = world.source()
    deliver(source, charge() | {"created": int(time.time()) - 61 * 86_400})
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.reason[:16]) == ("expired", "too old to judge")


def test_a_paused_source_takes_in_and_holds() -> None:
    source = world.source()
    Source.objects.update(paused_at=timezone.now())
    assert deliver(source, charge()).status_code == 200
    assert Job.objects.get().held == "paused"


def test_a_database_that_cannot_take_it_is_503_with_a_time_to_come_back() -> None:
    source = world.source()
    with mock.patch.object(webhook, "claim_together", side_effect=OperationalError("down")):
        answer = deliver(source, charge())
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"


def test_the_door_stays_shut_while_the_unique_constraint_is_missing() -> None:
    source = world.source()
    backstop.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE reliability_processedkey RENAME CONSTRAINT one_claim_per_key TO gone"
        )
    try:
        assert deliver(source, charge()).status_code == 503
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE reliability_processedkey RENAME CONSTRAINT gone TO one_claim_per_key"
            )
    assert deliver(source, charge()).status_code == 200


def test_a_broker_that_is_down_changes_nothing_but_latency() -> None:
    source = world.source()
    with mock.patch("reliability.dispatch.current_app.send_task", side_effect=OSError("down")):
        assert deliver(source, charge()).status_code == 200
    assert Job.objects.get().state == "ready"


def test_an_equal_body_under_a_new_unsigned_id_runs_and_is_flagged() -> None:
    source = Source.objects.create(
        tenant=world.tenant(), slug="git", preset="github", scheme="github"
    )
    secret = base64.b16encode(b"a secret of ours").decode()
    SourceSecret.objects.rotate(source, secret, overlap_until=timezone.now())
    body = b'{"action": "opened"}'
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    with world.local("github.issues", nothing):
        for guid in ("g-1", "g-2"):
            answer = post(
                source, body, x_hub_signature_256=f"sha256={digest}", x_github_event="issues",
                x_github_delivery=guid,
            )  # fmt: skip
            assert answer.status_code == 200
    flags = Receipt.objects.order_by("pk").values_list("verdict", "suspected_replay")
    assert list(flags) == [("accepted", False), ("accepted", True)]


@pytest.mark.parametrize("held", [True, False])
def test_an_equal_body_under_a_new_unsigned_id_waits_where_the_source_holds_replays(
    held: bool,  # noqa: FBT001 - the parameter
) -> None:
    source = senders.source("github", hold_replays=held)
    body = b'{"action": "opened"}'
    with world.local("github.issues", nothing):
        for key in ("g-1", "g-1", "g-2"):
            post(source, body, **senders.sign("github", body, key=key, kind="issues"))
    letters = DeadLetter.objects.values_list("job__key__key", "outcome")
    assert list(letters) == ([("g-2", "suspect")] if held else [])


def test_signature_headers_and_cookies_are_not_kept() -> None:
    source, body = world.source(), json.dumps(charge()).encode()
    post(
        source, body, stripe_signature=stripe_signature(body), cookie="a=b", authorization="c"
    )
    assert set(Body.objects.get().headers) <= {"content-type", "user-agent"}
