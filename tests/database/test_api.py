"""Own jobs over HTTP: one key one job, each tenant its own, and every refusal says why."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability.handlers import Event, LocalTransaction, MappedOperation
from reliability.models import ApiToken, Job, ProcessedKey
from tests.database import world

pytestmark = pytest.mark.django_db


def paid(payload: Any) -> MappedOperation:
    return MappedOperation(
        operation_class="invoice", reference=payload["invoice"],
        amount_minor=payload["amount"], currency="EUR", exponent=2,
    )  # fmt: skip


def handle(event: Event) -> Any:
    return {"handled": event.payload["invoice"]}


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.kind("invoice.pay", handle, sink=LocalTransaction(), operation=paid),
        world.kind("careless", handle),
    ):
        yield


@pytest.fixture
def token() -> str:
    return ApiToken.issue(world.tenant(), "shop")


PAYMENT = {"kind": "invoice.pay", "payload": {"invoice": "I-1", "amount": 100}}


def call(
    token: str, body: Any = PAYMENT, *, key: str = "k-1", path: str = "jobs", **more: Any
) -> HttpResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
    return Client(enforce_csrf_checks=True).generic(  # type: ignore[return-value]
        "POST", f"/api/v1/{path}", raw, "application/json", headers=headers | more
    )


def look(token: str, path: str) -> HttpResponse:
    return Client().get(path, headers={"Authorization": f"Bearer {token}"})  # type: ignore[return-value]


def said(answer: HttpResponse) -> Any:
    return json.loads(answer.content)


def test_a_first_key_is_201_and_its_job_can_be_looked_at(token: str) -> None:
    answer = call(token)
    assert (answer.status_code, said(answer)["status"]) == (201, "accepted")
    shown = look(token, answer["Location"])
    assert said(shown) == {"job": said(answer)["job"], "state": "ready", "result": None}


def test_a_repeat_is_200_with_the_original_and_its_result(token: str) -> None:
    first = said(call(token))
    world.work_local()
    answer = call(token)
    assert answer.status_code == 200
    assert said(answer) == {
        "status": "duplicate", "job": first["job"], "state": "done",
        "result": {"handled": "I-1"},
    }  # fmt: skip
    assert Job.objects.count() == 1


def test_a_repeat_in_flight_is_409_where_that_is_asked_for(token: str) -> None:
    call(token)
    assert call(token, PAYMENT | {"in_flight": "refuse"}).status_code == 409
    world.work_local()
    assert call(token, PAYMENT | {"in_flight": "refuse"}).status_code == 200


def test_without_a_key_nothing_is_taken_in(token: str) -> None:
    assert call(token, key="").status_code == 400
    assert ProcessedKey.objects.count() == 0


def test_a_key_with_another_amount_is_422_and_the_first_stands(token: str) -> None:
    call(token)
    other = {"kind": "invoice.pay", "payload": {"invoice": "I-1", "amount": 200}}
    answer = call(token, other)
    assert (answer.status_code, Job.objects.count()) == (422, 1)
    assert "another operation or amount" in said(answer)["error"]


def test_an_operation_claimed_by_another_key_is_200_absorbed(token: str) -> None:
    call(token)
    assert said(call(token, key="k-2")) == {"status": "absorbed", "already_applied_by": "k-1"}


@pytest.mark.parametrize("kind", ["careless", "nobody.knows"])
def test_a_kind_without_a_sink_or_handler_is_422_with_the_remedy(
    token: str, kind: str
) -> None:
    answer = call(token, {"kind": kind, "payload": {}})
    assert (answer.status_code, ProcessedKey.objects.count()) == (422, 0)
    assert kind in said(answer)["error"]


@pytest.mark.parametrize("key", ["k" * 256, "a\tb"])
def test_a_key_that_is_none_is_422(token: str, key: str) -> None:
    assert call(token, key=key).status_code == 422


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"kind":1}', b'{"kind":"invoice.pay","kind":"x"}', b'{"payload":{}}',
     b'{"kind":"invoice.pay","pay_load":{}}', b'{"kind":"invoice.pay","in_flight":"wait"}',
     b'{"kind":"invoice.pay","payload":{"n":0.12345678901234567890123}}'],
)  # fmt: skip
def test_a_body_that_is_not_understood_is_400(token: str, body: bytes) -> None:
    assert call(token, body).status_code == 400
    assert ProcessedKey.objects.count() == 0


def test_fractions_that_a_float_holds_arrive_as_sent(token: str) -> None:
    seen: list[Any] = []
    with world.local("seen", lambda event: seen.append(event.payload)):
        call(token, b'{"kind":"seen","payload":{"a":1.10,"b":-2e3,"c":null,"d":[true]}}')
        world.work_local()
    assert seen == [{"a": 1.1, "b": -2000.0, "c": None, "d": [True]}]
    assert Decimal(repr(seen[0]["a"])) == Decimal("1.1")


def test_a_body_over_the_limit_is_413_and_a_compressed_one_415(token: str) -> None:
    assert call(token, b'"' + b"x" * 1_048_576 + b'"').status_code == 413
    assert call(token, **{"Content-Encoding": "gzip"}).status_code == 415


@pytest.mark.parametrize("shown", ["", "rel_unknown", "é", "Basic x"])
def test_without_a_token_of_ours_everything_is_401(shown: str) -> None:
    assert call(shown.encode().decode("latin-1")).status_code == 401
    assert Client().get(f"/api/v1/jobs/{uuid4()}").status_code == 401
    assert Client().post(f"/api/v1/jobs/{uuid4()}/complete").status_code == 401


def test_a_revoked_token_is_401(token: str) -> None:
    ApiToken.objects.update(revoked_at=timezone.now())
    assert call(token).status_code == 401


def test_a_token_is_kept_as_a_digest_only(token: str) -> None:
    kept = world.query("SELECT * FROM reliability_apitoken")
    assert token not in str(kept)
    assert token.removeprefix("rel_")[:20] not in str(kept)


def test_a_session_is_no_token(admin_client: Client) -> None:
    answer = admin_client.post(
        "/api/v1/jobs", b"{}", "application/json", headers={"Idempotency-Key": "k"}
    )
    assert answer.status_code == 401


def test_one_tenants_key_and_job_are_nothing_to_another(token: str) -> None:
    other = ApiToken.issue(world.tenant("borealis"), "theirs")
    first = call(token)
    assert call(other).status_code == 201
    assert look(other, first["Location"]).status_code == 404
    assert call(other, b"", path=f"jobs/{said(first)['job']}/complete").status_code == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405(method: str) -> None:
    assert Client().generic(method, "/api/v1/jobs").status_code == 405


def test_a_database_that_cannot_take_it_is_503(token: str) -> None:
    with mock.patch("reliability.claim.enqueue.claim", side_effect=OperationalError("down")):
        answer = call(token)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_an_own_job_cannot_be_reported_done_by_a_caller(token: str) -> None:
    job = said(call(token))["job"]
    assert call(token, b"", path=f"jobs/{job}/complete").status_code == 404
    assert Job.objects.get().state == "ready"


def test_a_forwarded_job_is_reported_done_over_http(token: str) -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_1", kind="forward"))
    Job.objects.update(queue="outside")
    [leased] = world.take_outside(1)
    job = Job.objects.get(pk=leased.id)
    path = f"jobs/{job.public_id}/complete"
    assert said(call(token, {"order": 7}, path=path)) == {"status": "done"}
    assert said(call(token, b"", path=path)) == {"status": "already done"}
    assert Job.objects.get().result == {"reported": {"order": 7}}


def test_a_report_on_a_job_that_was_not_started_is_409(token: str) -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_1", kind="forward"))
    job = Job.objects.get()
    answer = call(token, b"", path=f"jobs/{job.public_id}/complete")
    assert (answer.status_code, Job.objects.get().state) == (409, "ready")
