"""What did not come through the door: files of events, and a provider's own list."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from reliability.claim.backlog import read_line
from reliability.handlers import Event
from reliability.models import (
    ApiCredential,
    AuditEntry,
    DeadLetter,
    Job,
    ProcessedKey,
    Receipt,
    Source,
)
from tests.database import senders, world
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

NOTHING = {
    "accepted": 0,
    "duplicate": 0,
    "absorbed": 0,
    "conflict": 0,
    "letters": 0,
    "refused": 0,
}


def nothing(event: Event) -> None: ...


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local("stripe.charge.succeeded", nothing), world.local("github.push", nothing):
        yield


def charge(number: int) -> dict[str, Any]:
    now = int(timezone.now().timestamp())
    thing = {"id": f"ch_{number}", "amount": 100, "currency": "eur", "created": now}
    return {"id": f"evt_{number}", "object": "event", "type": "charge.succeeded", "created": now,
            "livemode": False, "data": {"object": thing}}  # fmt: skip


def deliver(source: Source, event: dict[str, Any]) -> None:
    body = json.dumps(event).encode()
    path = f"/hooks/{source.endpoint_token}/"
    signed = senders.sign("stripe", body)
    assert Client().post(path, body, "application/json", headers=signed).status_code == 200


def run(command: str, source: Source, *arguments: str) -> Any:
    out = StringIO()
    call_command(
        command, "--source", source.slug, "--tenant", "acme", *arguments, "--json", stdout=out
    )
    return json.loads(out.getvalue())


def ingest(source: Source, path: Path, *more: str) -> Any:
    return run("ingest", source, "--file", str(path), *more)


def written(folder: Path, *lines: bytes | dict[str, Any]) -> Path:
    path = folder / "events.jsonl"
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(raw) + b"\n\n")
    return path


def test_a_trusted_file_is_claimed_once_and_what_had_arrived_stays_one(tmp_path: Path) -> None:
    source = senders.source("stripe")
    for number in range(40):
        deliver(source, charge(number))
    path = written(tmp_path, *(charge(number) for number in range(250)))
    told = {"source": "stripe", **NOTHING}
    assert ingest(source, path, "--trusted") == told | {"accepted": 210, "duplicate": 40}
    assert ingest(source, path, "--trusted") == told | {"duplicate": 250}
    assert Job.objects.count() == 250
    entries = AuditEntry.objects.filter(act="ingest file")
    assert [entry.facts["accepted"] for entry in entries.order_by("number")] == [210, 0]


def test_lines_that_cannot_be_read_are_letters_with_their_bytes(tmp_path: Path) -> None:
    source = senders.source("stripe")
    told = ingest(source, written(tmp_path, b"{broken", charge(1)), "--trusted")
    assert (told["accepted"], told["letters"]) == (2, 1)
    assert bytes(DeadLetter.objects.get().job.key.bodies.get().raw) == b"{broken"


def test_without_trust_bare_lines_are_refused_and_nothing_is_claimed(tmp_path: Path) -> None:
    source = senders.source("stripe")
    with pytest.raises(SystemExit):
        ingest(source, written(tmp_path, charge(1)))
    assert ProcessedKey.objects.count() == 0


def recorded(body: bytes, headers: dict[str, str], **more: str) -> dict[str, Any]:
    return {"headers": headers, "body_base64": base64.b64encode(body).decode()} | more


def test_a_recorded_delivery_is_verified_as_of_the_time_it_came(tmp_path: Path) -> None:
    source = senders.source("stripe")
    body, week = json.dumps(charge(1)).encode(), timezone.now() - timedelta(days=7)
    old = int(week.timestamp())
    signed = senders.mac(world.SECRET.encode(), f"{old}.".encode() + body).hex()
    headers = {"Stripe-Signature": f"t={old},v1={signed}"}
    forged = {"Stripe-Signature": f"t={old},v1={'0' * 64}"}
    at = {"received_at": week.isoformat()}
    path = written(
        tmp_path, recorded(body, headers, **at), recorded(body, headers),
        recorded(body, forged, **at),
    )  # fmt: skip
    with pytest.raises(SystemExit):
        ingest(source, path)
    assert ProcessedKey.objects.get().key == "evt_1"
    facts = AuditEntry.objects.get(act="ingest file").facts
    assert (facts["accepted"], facts["refused"]) == (1, 2)


def test_a_recorded_deliverys_headers_name_it(tmp_path: Path) -> None:
    source = senders.source("github")
    body = b'{"ref":"refs/heads/main"}'
    line = {
        "headers": senders.sign("github", body, key="g-1", kind="push"),
        "body": body.decode(),
    }
    assert ingest(source, written(tmp_path, line))["accepted"] == 1
    assert ProcessedKey.objects.get().key == "g-1"


@pytest.mark.parametrize(
    "line",
    [b'{"headers": 1, "body": "x"}', b'{"headers": {}, "body_base64": "*"}',
     b'{"headers": {}}', b'{"body": "x"}', b'{"headers": {}, "body": "x", "more": 1}', b"{", b"1"],
)  # fmt: skip
def test_what_is_no_recorded_delivery_is_a_bare_body(line: bytes) -> None:
    assert read_line(line + b"\n").body == line


# A provider's list


class StripeApi:
    """Stripe's list of events, newest first, a page at a time."""

    def __init__(self) -> None:
        self.events = [charge(number) for number in range(100)][::-1]
        self.status = 200

    def __call__(self, heard: Heard) -> Says:
        query = {
            name: values[0] for name, values in parse_qs(urlsplit(heard.path).query).items()
        }
        if self.status != 200 or heard.headers["authorization"] != "Bearer rk_test_1":
            return Says(401, json.dumps({"error": {"message": "no such key"}}).encode())
        ids = [event["id"] for event in self.events]
        start = ids.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        page = self.events[start : start + 30]
        more = start + 30 < len(ids)
        said = {"object": "list", "url": "/v1/events", "has_more": more, "data": page}
        return Says(200, json.dumps(said).encode(), {"Content-Type": "application/json"})


@pytest.fixture
def stripe_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    allow_loopback(monkeypatch)
    with serving(StripeApi()) as place:
        yield place


def fetch(source: Source) -> Any:
    return run("fetch", source, "--since", "2026-01-01")


def test_of_100_missed_events_40_had_arrived_and_60_are_new(stripe_api: Elsewhere) -> None:
    source = senders.source("stripe", options={"api_url": stripe_api.url})
    ApiCredential.keep(source, "rk_test_1")
    for number in range(40):
        deliver(source, charge(number))
    told = fetch(source)
    assert told == {"source": "stripe", **NOTHING, "accepted": 60, "duplicate": 40}
    assert Job.objects.count() == 100
    assert Receipt.objects.filter(verdict="conflict").count() == 0
    assert len(stripe_api.heard) == 4
    assert "created%5Bgte%5D=1767225000" in stripe_api.heard[0].path
    assert AuditEntry.objects.get(act="fetch events").facts["accepted"] == 60


def test_without_a_credential_or_with_a_wrong_one_it_says_so(stripe_api: Elsewhere) -> None:
    source = senders.source("stripe", options={"api_url": stripe_api.url})
    with pytest.raises(CommandError, match="no API credential"):
        fetch(source)
    ApiCredential.keep(source, "rk_wrong")
    with pytest.raises(CommandError, match="no such key"):
        fetch(source)


def test_stripe_that_takes_no_more_requests_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allow_loopback(monkeypatch)
    busy = Says(429, b'{"error": {"message": "slow down", "code": "rate_limit"}}')
    with serving(lambda _heard: busy) as place:
        source = senders.source("stripe", options={"api_url": place.url})
        ApiCredential.keep(source, "rk_test_1")
        with pytest.raises(CommandError, match="Stripe takes no more requests for now"):
            fetch(source)


def test_a_provider_without_a_list_of_events_is_named() -> None:
    with pytest.raises(CommandError, match="Known: stripe, gocardless, github"):
        fetch(senders.source("shopify"))
