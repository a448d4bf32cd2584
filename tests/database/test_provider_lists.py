"""Events fetched through GoCardless's and GitHub's own packages, from servers played here."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from reliability.conf import conf
from reliability.handlers import Event
from reliability.models import ApiCredential, Job, ProcessedKey, Receipt, Source
from reliability.reconcile.providers import asking, github_deliveries
from tests.database import senders, world
from tests.database.elsewhere import (
    Elsewhere,
    Heard,
    Says,
    allow_loopback,
    serving,
    silence,
)

pytestmark = pytest.mark.django_db

JSON = {"Content-Type": "application/json"}
TOKEN = "tok_only_for_tests"


def nothing(event: Event) -> None: ...


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    allow_loopback(monkeypatch)
    with (
        world.local("gocardless.payments.confirmed", nothing),
        world.local("github.push", nothing),
    ):
        yield


def fetch(source: Source, since: str = "2026-01-01") -> Any:
    out = StringIO()
    call_command(
        "fetch", "--source", source.slug, "--tenant", "acme", "--since", since, "--json",
        stdout=out,
    )  # fmt: skip
    return json.loads(out.getvalue())


def deliver(source: Source, body: bytes, **signed: str) -> None:
    headers = senders.sign(source.scheme, body, **signed)
    path = f"/hooks/{source.endpoint_token}/"
    assert Client().post(path, body, "application/json", headers=headers).status_code < 300


def short_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(conf(), outbound_time=timedelta(milliseconds=50))
    monkeypatch.setattr(asking, "conf", lambda: short)


# GoCardless


def payment_event(number: int) -> dict[str, Any]:
    now = timezone.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"id": f"EV{number:04}", "created_at": now, "resource_type": "payments",
            "action": "confirmed", "links": {"payment": f"PM{number:04}"}}  # fmt: skip


class GoCardlessApi:
    """GoCardless's list of events, newest first, a few a page, from a cursor on."""

    def __init__(self, many: int, page: int = 30) -> None:
        self.events = [payment_event(number) for number in range(many)][::-1]
        self.page = page
        self.broken: list[Says] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, heard: Heard) -> Says:
        if self.broken:
            return self.broken.pop(0)
        if heard.headers["authorization"] != f"Bearer {TOKEN}":
            return refused(401, "authentication_failed", "no such token")
        query = parse_qs(urlsplit(heard.path).query)
        ids = [event["id"] for event in self.events]
        start = ids.index(query["after"][0]) + 1 if "after" in query else 0
        some = self.events[start : start + self.page]
        after = some[-1]["id"] if start + self.page < len(ids) else None
        said = {"events": some, "meta": {"cursors": {"before": None, "after": after}}}
        self.meanwhile()
        return Says(200, json.dumps(said).encode(), JSON)


def refused(status: int, kind: str, message: str) -> Says:
    error = {"code": status, "type": kind, "message": message, "errors": []}
    return Says(status, json.dumps({"error": error}).encode(), JSON)


def gocardless(place: Elsewhere, token: str = TOKEN) -> Source:
    source = senders.source("gocardless", options={"api_url": place.url})
    ApiCredential.keep(source, token)
    return source


def test_of_100_gocardless_events_40_had_arrived_and_60_are_new() -> None:
    api = GoCardlessApi(100)
    with serving(api) as place:
        source = gocardless(place)
        deliver(source, senders.gocardless(*api.events[:40]))
        told = fetch(source)
    assert (told["accepted"], told["duplicate"], told["letters"]) == (60, 40, 0)
    assert Job.objects.count() == 100
    assert Receipt.objects.filter(verdict="conflict").count() == 0
    assert len(place.heard) == 4
    assert "created_at%5Bgte%5D=2025-12-31T23%3A50%3A00.000000Z" in place.heard[0].path


def test_an_event_at_the_edge_of_a_page_is_not_lost_while_others_are_added() -> None:
    api = GoCardlessApi(61)
    newest = iter(range(1000, 1100))
    api.meanwhile = lambda: api.events.insert(0, payment_event(next(newest)))
    with serving(api) as place:
        fetch(gocardless(place))
    keys = set(ProcessedKey.objects.values_list("key", flat=True))
    assert {f"EV{number:04}" for number in range(61)} <= keys


def test_a_provider_that_takes_no_more_requests_is_named_with_the_remedy() -> None:
    api = GoCardlessApi(1)
    api.broken = [refused(429, "invalid_api_usage", "slow down")]
    with (
        serving(api) as place,
        pytest.raises(
            CommandError, match="no more requests for now: fetch again in a few min"
        ),
    ):
        fetch(gocardless(place))


def test_one_broken_answer_is_asked_for_again_and_two_are_told_without_their_text() -> None:
    api = GoCardlessApi(1)
    bad = Says(502, b"<html>a proxy's secret words</html>")
    api.broken = [bad]
    with serving(api) as place:
        source = gocardless(place)
        assert fetch(source)["accepted"] == 1
        api.broken = [bad, bad]
        with pytest.raises(CommandError) as refusal:
            fetch(source)
    assert str(refusal.value) == "GoCardless answered 502, not in JSON: fetch again later"


def test_a_provider_that_says_nothing_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_time(monkeypatch)
    with (
        silence() as place,
        pytest.raises(CommandError, match=r"did not answer \(ReadTimeout\)"),
    ):
        fetch(gocardless(place))


def test_the_credential_stands_in_no_message_and_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = "tok_wrong_and_secret"
    with serving(GoCardlessApi(1)) as place, pytest.raises(CommandError) as refusal:
        fetch(gocardless(place, token=wrong))
    assert "no such token" in str(refusal.value)
    assert wrong not in str(refusal.value) + caplog.text


def test_a_list_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PAGES_MAX", 2)
    with (
        serving(GoCardlessApi(100)) as place,
        pytest.raises(CommandError, match="more than 2 pages: ask for fewer days"),
    ):
        fetch(gocardless(place))


def test_no_credential_is_sent_to_an_address_outside_our_own_networks() -> None:
    source = senders.source("gocardless", options={"api_url": "https://192.88.98.1"})
    ApiCredential.keep(source, TOKEN)
    with pytest.raises(CommandError, match="so no credential is sent there"):
        fetch(source)


@pytest.mark.parametrize(
    ("scheme", "module"),
    [("gocardless", "gocardless_pro"), ("github", "github"), ("stripe", "stripe")],
)
def test_a_missing_package_is_one_line_that_names_the_extra(
    scheme: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name == module:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without)
    source = senders.source(scheme, options={"hook": "repos/acme/shop/hooks/7"})
    with pytest.raises(CommandError, match=rf"install reliability\[{scheme}\]"):
        fetch(source)


# GitHub


class GitHubApi:
    """A hook's deliveries, newest first, with a redelivery of each tenth among them."""

    def __init__(self, many: int) -> None:
        now = datetime.now(UTC)
        self.url = ""
        self.answer: Says | None = None
        self.deliveries = [
            summary(number, now - timedelta(seconds=number), again=again)
            for number in range(many)
            for again in ((True, False) if number % 10 == 0 else (False,))
        ]

    def __call__(self, heard: Heard) -> Says:
        if self.answer:
            return self.answer
        if heard.headers["authorization"] != f"token {TOKEN}":
            return Says(401, b'{"message": "Bad credentials"}', JSON)
        parts = urlsplit(heard.path)
        if (last := parts.path.rpartition("/")[2]) != "deliveries":
            return self._one(int(last))
        start = int(parse_qs(parts.query).get("cursor", ["0"])[0])
        page = self.deliveries[start : start + 30]
        more = {"Link": f'<{self.url}{parts.path}?cursor={start + 30}>; rel="next"'}
        return Says(
            200,
            json.dumps(page).encode(),
            JSON | (more if start + 30 < len(self.deliveries) else {}),
        )

    def _one(self, number: int) -> Says:
        [found] = [one for one in self.deliveries if one["id"] == number]
        payload = {"ref": "refs/heads/main", "number": found["guid"]}
        request = {"headers": {"X-GitHub-Event": "push"}, "payload": payload}
        return Says(200, json.dumps(found | {"request": request}).encode(), JSON)


def summary(number: int, at: datetime, *, again: bool) -> dict[str, Any]:
    return {"id": number * 2 + again, "guid": f"g-{number}", "event": "push",
            "delivered_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "redelivery": again,
            "status": "OK", "status_code": 200}  # fmt: skip


def github(place: Elsewhere, api: GitHubApi) -> Source:
    api.url = place.url
    options = {"api_url": place.url, "hook": "repos/acme/shop/hooks/7"}
    source = senders.source("github", options=options)
    ApiCredential.keep(source, TOKEN)
    return source


def test_of_50_github_deliveries_20_had_arrived_and_30_are_new() -> None:
    api = GitHubApi(50)
    with serving(api) as place:
        source = github(place, api)
        for number in range(20):
            deliver(source, b'{"ref": "refs/heads/main"}', key=f"g-{number}", kind="push")
        told = fetch(source)
    assert (told["accepted"], told["duplicate"], told["letters"]) == (30, 20, 0)
    assert Job.objects.filter(kind="github.push").count() == 50
    assert Receipt.objects.filter(verdict="conflict").count() == 0
    listings = [one for one in place.heard if "deliveries?" in one.path]
    assert (len(listings), len(place.heard)) == (2, 52)


def test_deliveries_before_the_span_are_not_asked_for() -> None:
    api = GitHubApi(3)
    old = datetime.now(UTC) - timedelta(days=2)
    api.deliveries.append(summary(90, old, again=False))
    with serving(api) as place:
        assert fetch(github(place, api), since=f"{timezone.now():%Y-%m-%d}")["accepted"] == 3


def test_github_tells_when_it_takes_requests_again() -> None:
    api = GitHubApi(1)
    gone = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1796047500"}
    api.answer = Says(403, b'{"message": "API rate limit exceeded for user"}', JSON | gone)
    with serving(api) as place:
        source = github(place, api)
        with pytest.raises(CommandError, match="fetch again after 14:05 UTC"):
            fetch(source)
        api.answer = Says(429, b'{"message": "Too many"}', JSON | {"Retry-After": "30"})
        with pytest.raises(CommandError, match="fetch again in 30 seconds"):
            fetch(source)
        api.answer = Says(500, b'{"message": "Oops"}', JSON)
        with pytest.raises(CommandError, match="GitHub answered 500: Oops"):
            fetch(source)


def test_a_github_source_must_say_which_hook() -> None:
    source = senders.source("github", options={"hook": "repos/../../user/hooks/1"})
    ApiCredential.keep(source, TOKEN)
    with pytest.raises(CommandError, match="hook=repos/OWNER/NAME/hooks/NUMBER"):
        fetch(source)


def test_more_deliveries_than_github_takes_requests_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(github_deliveries, "DELIVERIES_MAX", 5)
    api = GitHubApi(9)
    with serving(api) as place, pytest.raises(CommandError, match="more than 5 deliveries"):
        fetch(github(place, api))
