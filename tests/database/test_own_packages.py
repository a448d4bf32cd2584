"""Deliveries signed by the providers' own packages, and the two schemes whose body is anybody's."""

import json
import time
from datetime import UTC, datetime

import pytest
import standardwebhooks
import stripe
from django.test import Client

from reliability.claim.presets import PRESETS
from reliability.handlers import Event
from reliability.management.tracing import claims_of
from reliability.models import Job, Receipt, Source
from tests.database import senders, world

pytestmark = pytest.mark.django_db

EVENT = {"id": "e_1", "type": "invoice.paid", "data": {"amount": 1250, "note": "für Öl"}}


def nothing(event: Event) -> None: ...


def deliver(source: Source, body: str, headers: dict[str, str]) -> tuple[int, str]:
    answer = Client().post(
        f"/hooks/{source.endpoint_token}/", body.encode(), "application/json", headers=headers
    )
    return answer.status_code, json.loads(answer.content)["status"]


def test_an_event_signed_with_stripes_package_is_accepted_and_its_repeat_a_duplicate() -> None:
    source = senders.source("stripe")
    for indent, said in ((None, "accepted"), (2, "duplicate")):
        body = json.dumps(EVENT, indent=indent, ensure_ascii=False)
        at = int(time.time())
        sign = stripe.WebhookSignature._compute_signature
        signature = sign(f"{at}.{body}", senders.SECRETS["stripe"])
        with world.local("stripe.invoice.paid", nothing):
            told = deliver(source, body, {"Stripe-Signature": f"t={at},v1={signature}"})
        assert told == (200, said)


def test_a_message_signed_with_standardwebhooks_is_accepted_and_its_repeat_a_duplicate() -> (
    None
):
    source = senders.source("standard-webhooks")
    secret = senders.SECRETS["standard-webhooks"]
    for indent, said in ((None, "accepted"), (2, "duplicate")):
        body = json.dumps(EVENT, indent=indent, ensure_ascii=False)
        now = datetime.now(UTC)
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": standardwebhooks.Webhook(secret).sign("msg_1", now, body),
        }
        with world.local("standard-webhooks.invoice.paid", nothing):
            assert deliver(source, body, headers) == (200, said)


@pytest.mark.parametrize("scheme", ["standard-webhooks", "generic-hmac"])
def test_a_body_of_anybodys_is_done_is_found_in_trace_and_a_duplicate_when_reformatted(
    scheme: str,
) -> None:
    source = senders.source(scheme, options=dict(PRESETS[scheme].options))
    with world.local(f"{scheme}.invoice.paid", nothing):
        for indent, said in ((None, "accepted"), (3, "duplicate")):
            body = json.dumps(EVENT, indent=indent, sort_keys=indent is None)
            signed = senders.sign(scheme, body.encode(), key="e_1")
            assert deliver(source, body, signed) == (200, said)
        world.work_local()
    assert Job.objects.get().state == "done"
    assert sorted(Receipt.objects.values_list("verdict", flat=True)) == [
        "accepted",
        "duplicate",
    ]
    assert claims_of("e_1", source.tenant)
