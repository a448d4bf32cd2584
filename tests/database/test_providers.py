"""The providers' own examples through the door, and every published signature vector."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability import handlers
from reliability.claim import certificates, door
from reliability.claim.presets import PRESETS
from reliability.handlers import Event
from reliability.management.tracing import claims_of
from reliability.models import DeadLetter, Job, ProcessedKey, Receipt, Source, SourceSecret
from reliability.outbound import Answer, Request, paypal
from tests.database import senders, world
from tests.unit.test_signatures_vectors import DATA, VECTORS, body_of, setup

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not DATA.exists(), reason="public sample data is not here"),
]

PAYLOADS = DATA / "payloads"
# A signed form of one payload, with a fresh id and, where it names one, a fresh time.
TIMES = {"created", "create_time", "created_at", "eventDate", "timestamp"}
NO_WEBHOOKS = {
    "accountHolderCreated.json", "events_list_api.json", "webhooks_list_api.json",
    "test.signed.json",
}  # fmt: skip
"""Answers of an API, a platform webhook (a scheme of its own), a body without a type."""


def nothing(event: Event) -> None: ...


def files(*providers: str) -> list[Path]:
    return [
        path
        for provider in providers
        for path in sorted((PAYLOADS / provider).glob("*.json"))
        if path.name not in NO_WEBHOOKS
    ]


def deliver(source: Source, body: bytes, headers: dict[str, str]) -> HttpResponse:
    return Client().generic(  # type: ignore[return-value]
        "POST", f"/hooks/{source.endpoint_token}/", body, "application/json", headers=headers
    )


# Vectors


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_a_vector_gets_its_verdict_at_the_door(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme, secrets, options = setup(vector)
    source = Source.objects.create(
        tenant=world.tenant(), slug="s", preset=scheme, scheme=scheme,
        options=storable(dict(options)),
    )  # fmt: skip
    now = datetime.fromtimestamp(vector.get("now", 1_700_000_000), UTC)
    for secret in filter(None, reversed(secrets)):
        SourceSecret.objects.rotate(source, secret, overlap_until=now + timedelta(days=1))
    monkeypatch.setattr(certificates, "send", lambda request: certificate(options, request))
    certificates.forget()
    headers = {name: latin(value) for name, value in vector["request"]["headers"].items()}
    with time_machine.travel(now, tick=False):
        door.forget()
        answer = deliver(source, body_of(vector), headers)
    welcome = vector["expect"].startswith("accept")
    expected = PRESETS[scheme].acknowledgement
    assert answer.status_code == (expected.status if welcome else expected.refused_status)
    assert ProcessedKey.objects.exists() == welcome
    if vector["expect"] == "accept-signature-reject-json":
        assert DeadLetter.objects.get().outcome == "unparseable"


def storable(options: dict[str, Any]) -> dict[str, Any]:
    options.pop("certificates", None)
    roots = options.get("roots")
    return options | ({"roots": roots.decode()} if isinstance(roots, bytes) else {})


def certificate(options: Any, request: Request) -> Answer:
    pem = options["certificates"].get(request.url, b"")
    return Answer(status=200 if pem else 404, headers={}, body=pem, cut=False)


def latin(value: str) -> str:
    """Write a header as a server hands it on: bytes read as Latin-1."""
    return value.encode().decode("latin-1")


# Payloads


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handle every type there is; let PayPal confirm all it is asked about."""
    with ExitStack() as stack:
        known: set[str] = set()

        def find(kind: str) -> handlers.Kind | None:
            if kind not in known:
                known.add(kind)
                stack.enter_context(world.local(kind, nothing))
            return handlers._kinds.get(kind)

        monkeypatch.setattr("reliability.claim.route.find", find)
        leaf = Answer(status=200, headers={}, body=senders.authority().leaf, cut=False)
        monkeypatch.setattr(certificates, "send", lambda _request: leaf)
        monkeypatch.setattr(
            "reliability.work.confirm.PROVIDERS", {"paypal": lambda *_: paypal.Confirmed()}
        )
        certificates.forget()
        yield


@pytest.mark.parametrize(
    "path",
    files("stripe", "github", "adyen", "paypal", "gocardless", "shopify"),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_an_example_is_done_is_found_in_trace_and_is_a_duplicate_when_reformatted(
    path: Path, everything: None
) -> None:
    scheme = path.parent.name
    roots = {"roots": senders.authority().root.decode()} if scheme == "paypal" else {}
    source = senders.source(scheme, options=roots)
    event = fresh(scheme, json.loads(path.read_text()))
    for indent in (None, 3):
        body = json.dumps(event, indent=indent).encode()
        headers = senders.sign(scheme, body, key="an-id", kind=path.name.split(".")[0])
        answer = deliver(source, body, headers)
        assert answer.status_code == PRESETS[scheme].acknowledgement.status
    world.confirm_and_work()
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}
    verdicts = list(Receipt.objects.values_list("verdict", flat=True))
    assert verdicts.count("accepted") == verdicts.count("duplicate") == Job.objects.count()
    for key in ProcessedKey.objects.values_list("key", flat=True):
        assert claims_of(key, source.tenant)


def test_the_16_stripe_examples_as_they_are_give_one_claim_per_id(everything: None) -> None:
    source = senders.source("stripe")
    bodies = [path.read_bytes() for path in files("stripe")]
    ids = {json.loads(body)["id"] for body in bodies}
    for body in bodies:
        assert deliver(source, body, senders.sign("stripe", body)).status_code == 200
    assert (len(bodies), ProcessedKey.objects.count()) == (16, len(ids))
    repeats = Receipt.objects.filter(verdict__in=["duplicate", "conflict"])
    assert repeats.count() == 16 - len(ids)


@pytest.mark.parametrize("path", files("stripe"), ids=lambda path: path.stem)
def test_an_example_from_years_ago_is_a_letter_that_says_too_old(
    path: Path, everything: None
) -> None:
    source = senders.source("stripe")
    body = path.read_bytes()
    deliver(source, body, senders.sign("stripe", body))
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.reason[:16]) == ("expired", "too old to judge")


def test_a_standard_webhook_without_a_type_is_done_or_unroutable(everything: None) -> None:
    source = senders.source("standard-webhooks")
    body = (PAYLOADS / "standard_webhooks" / "test.signed.json").read_bytes()
    deliver(source, body, senders.sign("standard-webhooks", body))
    world.confirm_and_work()
    assert Job.objects.get().state == "done"


def fresh(scheme: str, document: Any) -> Any:
    """Return the webhook a sample stands for, with ids of its own and times of today."""
    document = renewed(document)
    if scheme == "shopify":
        [document] = document.values()  # the inner object is what a webhook carries
    if scheme in {"stripe", "paypal"}:
        document |= {"id": "fresh"}
    for number, event in enumerate(
        document.get("events", []) if scheme == "gocardless" else []
    ):
        event["id"] = f"EVfresh{number}"
    return adyen(document) if scheme == "adyen" else document


def adyen(document: Any) -> Any:
    """Sign the items anew; two samples are an item without its envelope."""
    wrapped = document.get("notificationItems", [{"NotificationRequestItem": document}])
    items = [one["NotificationRequestItem"] for one in wrapped]
    renamed = [item | {"pspReference": f"P{n}"} for n, item in enumerate(items)]
    return json.loads(senders.adyen(*renamed))


def renewed(value: Any) -> Any:
    """Set every time that may tell an event's age to now, in the form it had."""
    if isinstance(value, list):
        return [renewed(one) for one in value]
    if not isinstance(value, dict):
        return value
    now = timezone.now()
    return {
        name: (int(now.timestamp()) if isinstance(one, int) else now.isoformat())
        if name in TIMES and isinstance(one, int | str)
        else renewed(one)
        for name, one in value.items()
    }
