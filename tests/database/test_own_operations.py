"""A source's own operation rules absorb what tells of the same thing twice."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability.claim import door
from reliability.claim.operations import read_rules
from reliability.claim.presets import PRESETS
from reliability.models import Operation, ProcessedKey, Source, SourceSecret
from tests.database import world

RULE = {
    "event_type": "order.paid",
    "operation_class": "order",
    "reference": ["/data/order_id"],
    "amount": ["/data/amount_minor"],
    "currency": ["/data/currency"],
}
SECRET = base64.b64encode(bytes(32)).decode()


def shop(operations: list[dict[str, Any]]) -> Source:
    preset = PRESETS["generic-hmac"]
    made = Source.objects.create(
        tenant=world.tenant(),
        slug="shop",
        preset=preset.name,
        scheme=preset.scheme,
        options=dict(preset.options),
        operation_rules=operations,
    )
    SourceSecret.objects.rotate(made, SECRET, overlap_until=timezone.now())
    door.forget()
    return made


def deliver(source: Source, key: str) -> HttpResponse:
    facts = {"order_id": "o_1", "amount_minor": 250, "currency": "EUR"}
    body = json.dumps(
        {"id": key, "type": "order.paid", "timestamp": int(time.time()), "data": facts}
    ).encode()
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return Client().generic(  # type: ignore[return-value]
        "POST",
        f"/hooks/{source.endpoint_token}/",
        body,
        "application/json",
        headers={"X-Signature": mac},
    )


@pytest.mark.django_db
def test_two_events_of_one_order_are_one_operation_by_the_sources_own_rule() -> None:
    source = shop([RULE])
    with world.local("generic-hmac.order.paid", lambda _event: None):
        answers = [json.loads(deliver(source, key).content) for key in ("a", "b")]
    assert [answer["status"] for answer in answers] == ["accepted", "duplicate"]
    assert answers[1]["already_applied_by"] == "a"
    [operation] = Operation.objects.all()
    assert (operation.reference, operation.amount_minor, operation.currency) == (
        "o_1",
        250,
        "EUR",
    )


@pytest.mark.django_db
def test_a_source_whose_rules_cannot_be_read_takes_nothing_in() -> None:
    source = shop([{"event_type": "order.paid"}])
    with world.local("generic-hmac.order.paid", lambda _event: None):
        assert deliver(source, "a").status_code == 503
    assert not ProcessedKey.objects.exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"references": ["/x"]}, "references"),
        ({"reference": "/data/order_id"}, "reference"),
        ({"event_type": 7}, "event_type"),
    ],
)
def test_a_wrong_rule_is_named_with_its_number(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=rf"^operation rule 2: .*{named}"):
        read_rules([RULE, RULE | change])
