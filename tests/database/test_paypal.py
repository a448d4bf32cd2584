"""PayPal signs a checksum: nothing of an event runs before PayPal was asked about it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability.claim import certificates
from reliability.errors import NoAnswer
from reliability.models import ApiCredential, DeadLetter, Job, ProcessedKey, Source
from reliability.outbound import Answer, Request, paypal
from reliability.work.dead_letters import Act, Seen, requeue
from reliability.work.drain import drain
from reliability.work.rescue import due_queues
from tests.database import senders, world
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

KIND = "paypal.PAYMENT.SALE.COMPLETED"
EVENT: dict[str, Any] = {
    "id": "WH-1", "event_type": "PAYMENT.SALE.COMPLETED", "resource_type": "sale",
    "create_time": "2099-01-01T00:00:00Z",
    "resource": {"id": "S-1", "amount": {"total": "20.00", "currency": "USD"}},
}  # fmt: skip


class PayPal:
    """PayPal's certificate host and API, played here."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {"WH-1": EVENT}
        self.status = 200
        self.certificate: bytes | None = senders.authority().leaf
        self.fetched: list[str] = []

    def certs(self, request: Request) -> Answer:
        self.fetched.append(request.url)
        if self.certificate is None:
            raise NoAnswer("down")
        status = 200 if self.certificate else 404
        return Answer(status=status, headers={}, body=self.certificate, cut=False)

    def api(self, heard: Heard) -> Says:
        if heard.path == "/v1/oauth2/token":
            said: dict[str, Any] = {"access_token": "a token", "expires_in": 32_400}
            return Says(200, json.dumps(said).encode())
        found = self.events.get(heard.path.rpartition("/")[2])
        if self.status != 200 or found is None:
            return Says(self.status if self.status != 200 else 404)
        return Says(200, json.dumps(found | {"links": ["its own"]}).encode())


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Iterator[PayPal]:
    played = PayPal()
    allow_loopback(monkeypatch)
    monkeypatch.setattr(certificates, "send", played.certs)
    certificates.forget()
    paypal.forget()
    yield played
    certificates.forget()
    paypal.forget()


@pytest.fixture
def api(theirs: PayPal) -> Iterator[Elsewhere]:
    with serving(theirs.api) as place:
        yield place


@pytest.fixture
def ran() -> Iterator[list[str]]:
    seen: list[str] = []
    with world.local(KIND, lambda event: seen.append(event.key)):
        yield seen


def source(api_url: str = "") -> Source:
    roots = senders.authority().root.decode()
    options = {"roots": roots} | ({"api_url": api_url} if api_url else {})
    made = senders.source("paypal", options=options)
    if api_url:
        ApiCredential.keep(made, "client:secret")
    return made


def deliver(at: Source, event: dict[str, Any] = EVENT) -> HttpResponse:
    body = json.dumps(event).encode()
    return Client().post(  # type: ignore[return-value]
        f"/hooks/{at.endpoint_token}/", body, "application/json", headers=senders.paypal(body)
    )


def work() -> None:
    """Let a worker look: at what is to be confirmed, then at what is due."""
    drain("outside")
    world.work_local()


def test_an_event_waits_unconfirmed_and_runs_once_paypal_has_confirmed_it(
    theirs: PayPal, api: Elsewhere, ran: list[str]
) -> None:
    assert deliver(source(api.url)).status_code == 200
    assert (Job.objects.get().state, Job.objects.get().held) == ("ready", "unconfirmed")
    world.work_local()
    assert ran == []
    work()
    assert ran == ["WH-1"]
    assert Job.objects.get().state == "done"
    token, event = api.heard
    assert token.headers["authorization"] == "Basic Y2xpZW50OnNlY3JldA=="
    assert event.path == "/v1/notifications/webhooks-events/WH-1"
    assert event.headers["authorization"] == "Bearer a token"


@pytest.mark.parametrize(
    "genuine",
    [None, EVENT | {"resource": {"id": "S-1", "amount": {"total": "2.00"}}},
     EVENT | {"event_type": "PAYMENT.SALE.REFUNDED"}],
)  # fmt: skip
def test_an_event_paypal_has_otherwise_or_not_at_all_is_a_suspect_letter(
    theirs: PayPal, api: Elsewhere, ran: list[str], genuine: dict[str, Any] | None
) -> None:
    theirs.events = {"WH-1": genuine} if genuine else {}
    deliver(source(api.url))
    work()
    assert ran == []
    assert DeadLetter.objects.get().outcome == "suspect"


def test_without_a_credential_the_event_is_suspect_and_runs_after_one_is_added(
    theirs: PayPal, api: Elsewhere, ran: list[str]
) -> None:
    at = source()
    deliver(at)
    work()
    letter = DeadLetter.objects.get()
    assert (letter.outcome, ran) == ("suspect", [])
    assert "no API credential" in letter.reason
    Source.objects.update(options=at.options | {"api_url": api.url})
    ApiCredential.keep(at, "client:secret")
    requeue([Seen(letter.pk, letter.job.version)], Act(at.tenant, "ann"))
    world.make_due(letter.job)
    world.work_local()
    assert (ran, Job.objects.get().held) == ([], "unconfirmed")
    work()
    assert ran == ["WH-1"]


def test_paypal_being_down_delays_the_event_and_after_a_day_makes_a_letter(
    theirs: PayPal, api: Elsewhere, ran: list[str]
) -> None:
    theirs.status = 503
    deliver(source(api.url))
    work()
    job = Job.objects.get()
    assert (job.state, job.held, job.run_at > timezone.now()) == ("ready", "unconfirmed", True)
    world.make_due(job)
    assert "outside" in due_queues()
    Job.objects.update(created_at=timezone.now() - timedelta(hours=25))
    work()
    assert DeadLetter.objects.get().outcome == "suspect"
    assert ran == []


def test_a_paused_source_asks_nobody(theirs: PayPal, api: Elsewhere, ran: list[str]) -> None:
    deliver(source(api.url))
    Source.objects.update(paused_at=timezone.now())
    work()
    assert (ran, api.heard) == ([], [])


def test_a_certificate_is_fetched_once_and_kept(theirs: PayPal, ran: list[str]) -> None:
    at = source()
    assert [deliver(at, EVENT | {"id": f"WH-{n}"}).status_code for n in range(5)] == [200] * 5
    assert theirs.fetched == [senders.CERTIFICATE_URL]


def test_a_certificate_that_is_not_there_is_401_and_not_asked_for_again(
    theirs: PayPal,
) -> None:
    theirs.certificate = b""
    at = source()
    assert [deliver(at).status_code for _ in range(20)] == [401] * 20
    assert len(theirs.fetched) == 1


def test_a_certificate_host_that_is_down_is_503_and_asked_ten_times_a_minute_at_most(
    theirs: PayPal,
) -> None:
    theirs.certificate = None
    at = source()
    assert [deliver(at).status_code for _ in range(30)] == [503] * 30
    assert len(theirs.fetched) == 10


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/v1/notifications/certs/C", "https://api.paypal.com.evil.example/x",
     "http://api.paypal.com/v1/notifications/certs/C", "https://api.paypal.com@evil.example/",
     "https://api.paypal.com/v1/notifications/certs/../../x"],
)  # fmt: skip
def test_a_certificate_from_elsewhere_is_never_fetched(theirs: PayPal, url: str) -> None:
    at, body = source(), json.dumps(EVENT).encode()
    headers = senders.paypal(body) | {"Paypal-Cert-Url": url}
    answer = Client().post(
        f"/hooks/{at.endpoint_token}/", body, "application/json", headers=headers
    )
    assert (answer.status_code, theirs.fetched) == (401, [])


def test_the_systems_own_roots_can_be_read() -> None:
    roots = certificates.system_roots()
    assert not roots or roots.startswith(b"-----BEGIN CERTIFICATE-----")


def test_a_confirmed_key_is_marked_for_good(
    theirs: PayPal, api: Elsewhere, ran: list[str]
) -> None:
    deliver(source(api.url))
    assert ProcessedKey.objects.get().unconfirmed
    work()
    assert not ProcessedKey.objects.get().unconfirmed
