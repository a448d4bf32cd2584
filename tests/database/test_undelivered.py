"""The hourly provisional check: what Stripe could not deliver is fetched, once, and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from django.test import Client

from reliability.claim.door import forget
from reliability.console.provisional import provisional
from reliability.handlers import Event
from reliability.models import ApiCredential, Job, ProvisionalCheck, Run, Source
from reliability.project.celery import schedule
from reliability.reconcile.undelivered import Checked, check_undelivered
from tests.database import senders, world
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

TWO = datetime(2026, 10, 14, 14, tzinfo=UTC)


def nothing(event: Event) -> None: ...


class StripeApi:
    """Some events that no endpoint acknowledged, unless Stripe is down."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.status = 200

    def __call__(self, _heard: Heard) -> Says:
        if self.status != 200:
            error = {"error": {"message": "Stripe is down"}}
            return Says(self.status, json.dumps(error).encode())
        said = {"object": "list", "url": "/v1/events", "has_more": False, "data": self.events}
        return Says(200, json.dumps(said).encode(), {"Content-Type": "application/json"})


def charge(number: int) -> dict[str, Any]:
    thing = {"id": f"ch_{number}", "amount": 100, "currency": "eur", "created": 1_791_985_000}
    return {"id": f"evt_{number}", "object": "event", "type": "charge.succeeded",
            "created": 1_791_985_000, "livemode": False, "data": {"object": thing}}  # fmt: skip


@pytest.fixture
def api() -> StripeApi:
    return StripeApi()


@pytest.fixture
def place(api: StripeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    forget()
    allow_loopback(monkeypatch)
    with (
        serving(api) as place,
        world.local("stripe.charge.succeeded", nothing),
        time_machine.travel(TWO, tick=False),
    ):
        yield place


@pytest.fixture
def source(place: Elsewhere) -> Source:
    made = senders.source("stripe", options={"api_url": place.url})
    ApiCredential.keep(made, "rk_test_1")
    return made


def check() -> Checked:
    return check_undelivered(Run.Trigger.BEAT)


def test_what_was_not_delivered_is_fetched_once_and_what_was_here_stays_one(
    source: Source, api: StripeApi
) -> None:
    api.events = [charge(number) for number in range(9)]
    for event in api.events[:2]:
        body = json.dumps(event).encode()
        signed = senders.sign("stripe", body)
        Client().post(
            f"/hooks/{source.endpoint_token}/", body, "application/json", headers=signed
        )
    assert check() == Checked(sources=1, accepted=7, known=2)
    assert check() == Checked(sources=1, known=9)
    assert Job.objects.count() == 9
    runs = Run.objects.filter(job="undelivered").order_by("pk")
    assert [(run.ok, run.facts["accepted"]) for run in runs] == [(True, 7), (True, 0)]


def test_only_undelivered_events_since_a_little_before_the_last_good_check_are_asked_for(
    source: Source, api: StripeApi, place: Elsewhere
) -> None:
    check()
    with time_machine.travel(TWO + timedelta(hours=1), tick=False):
        api.status = 401
        assert check().failed == 1
    api.status = 200
    with time_machine.travel(TWO + timedelta(hours=2), tick=False):
        check()
    first, _, last = (parse_qs(urlsplit(one.path).query) for one in place.heard)
    assert first["delivery_success"] == ["false"]
    assert first["created[gte]"] == [
        str(int(datetime(2026, 10, 13, 14, tzinfo=UTC).timestamp()))
    ]
    assert last["created[gte]"] == [
        str(int(datetime(2026, 10, 14, 13, 50, tzinfo=UTC).timestamp()))
    ]


def test_a_source_without_a_key_is_never_asked(source: Source, place: Elsewhere) -> None:
    ApiCredential.objects.all().delete()
    assert check() == Checked()
    assert place.heard == []
    assert Run.objects.get(job="undelivered").ok


def test_a_provider_that_cannot_be_asked_is_told_and_stops_no_other(
    source: Source, place: Elsewhere, api: StripeApi
) -> None:
    other = senders.source("stripe", "stripe-two", options={"api_url": place.url})
    ApiCredential.keep(other, "rk_test_2")
    Source.objects.filter(pk=source.pk).update(options={"api_url": "http://10.0.0.1"})
    api.events = [charge(1)]
    assert check() == Checked(sources=2, accepted=1, failed=1)
    assert not Run.objects.get(job="undelivered").ok
    told = ProvisionalCheck.objects.get(source=source)
    assert told.why == "10.0.0.1 has an address that is not public"


class Asking:
    """As much of a request as the reader looks at."""

    def __init__(self, source: Source) -> None:
        self.tenant = source.tenant
        self.now = TWO + timedelta(minutes=30)


def shown(source: Source) -> list[tuple[str, datetime, bool]]:
    found = provisional(Asking(source))  # type: ignore[arg-type]
    return [(one.said, one.at, one.failing) for one in found]


def test_the_page_tells_what_was_fetched_and_when(source: Source, api: StripeApi) -> None:
    api.events = [charge(number) for number in range(7)]
    check()
    assert shown(source) == [("7 undelivered events fetched", TWO, False)]
    later = TWO + timedelta(minutes=20)
    with time_machine.travel(later, tick=False):
        check()
    assert shown(source) == [("7 undelivered events fetched", TWO, False)]
    with time_machine.travel(later, tick=False):
        api.status = 401
        check()
    assert shown(source) == [("could not be asked: Stripe said: Stripe is down", later, True)]


def test_beat_asks_every_hour() -> None:
    assert schedule()["reliability.tick_undelivered"]["schedule"] == timedelta(hours=1)
