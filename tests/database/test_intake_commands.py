"""Destinations, tokens and how a source takes in, from the command line."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reliability.models import ApiCredential, ApiToken, AuditEntry, Destination, Source
from reliability.outbound import Guard
from reliability.outbound import client as outbound_client
from tests.database import senders, world

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--tenant", "acme", "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int) -> Any:
        address = {"shop.example": "93.184.216.34"}.get(host, "10.0.0.1")
        return [(0, 0, 0, "", (address, port))]

    monkeypatch.setattr(outbound_client, "guard", lambda: Guard(resolve=resolve))
    world.tenant()


ADD = ("destination", "add", "shop", "--url", "https://shop.example/in")


def test_a_destination_is_added_with_a_secret_shown_once_and_used_by_a_source() -> None:
    senders.source("stripe", "stripe-live")
    made = run(*ADD, "--rule", "404=retry", "--concurrency", "3")
    assert made["secret"].startswith("whsec_")
    assert Destination.objects.get().open() == made["secret"]
    assert (
        run("destination", "use", "shop", "--source", "stripe-live")["destination"] == "shop"
    )
    [listed] = run("destination", "list")
    assert (listed["sources"], listed["concurrency"]) == ("stripe-live", 3)
    assert "secret" not in listed
    run("destination", "use", "none", "--source", "stripe-live")
    assert Source.objects.get().destination is None
    assert AuditEntry.objects.filter(about="destination").count() == 3


@pytest.mark.parametrize(
    "wrong",
    [("--url", "https://inside.example/"), ("--url", "http://shop.example/"),
     ("--url", "https://u@shop.example/"), ("--rule", "404=maybe"), ("--rule", "9=retry"),
     ("--concurrency", "0"), ("--concurrency", "65")],
)  # fmt: skip
def test_a_destination_that_could_not_work_is_refused_in_one_line(
    wrong: tuple[str, str],
) -> None:
    with pytest.raises(CommandError):
        run(*ADD, *wrong)
    assert Destination.objects.count() == 0


def test_a_second_destination_of_a_name_is_refused() -> None:
    run(*ADD)
    with pytest.raises(CommandError):
        run(*ADD)


def test_a_token_is_shown_once_and_can_be_revoked() -> None:
    text = run("token", "add", "shop")["token"]
    assert ApiToken.holder(text) == world.tenant()
    [listed] = run("token", "list")
    assert listed["ends_in"] == text[-4:]
    with pytest.raises(CommandError, match="already"):
        run("token", "add", "shop")
    run("token", "revoke", "shop")
    assert ApiToken.holder(text) is None
    assert run("token", "list") == []


def test_intake_sets_what_it_is_told_and_shows_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = senders.source("stripe", "stripe-live")
    monkeypatch.setenv("STRIPE_KEY", "sk_test_1234")
    shown = run(
        "intake", "stripe-live", "--answer", "after-work", "--hold-replays", "yes",
        "--credential-from-env", "STRIPE_KEY",
    )  # fmt: skip
    assert shown == {
        "source": "stripe-live", "destination": None, "answer": "after work",
        "hold_replays": True, "credential": "ends in 1234",
    }  # fmt: skip
    assert ApiCredential.objects.get(source=made).open() == "sk_test_1234"
    assert "sk_test" not in str(AuditEntry.objects.values_list("facts", flat=True))
    assert run("intake", "stripe-live", "--hold-replays", "no")["answer"] == "after work"


@pytest.mark.parametrize("preset", ["adyen", "github", "paypal", "shopify"])
def test_a_provider_that_blocks_or_never_resends_cannot_wait_for_work(preset: str) -> None:
    senders.source(preset)
    with pytest.raises(CommandError, match="cannot answer after work"):
        run("intake", preset, "--answer", "after-work")


def test_an_empty_credential_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    senders.source("stripe")
    monkeypatch.setenv("STRIPE_KEY", " ")
    with pytest.raises(CommandError, match="empty"):
        run("intake", "stripe", "--credential-from-env", "STRIPE_KEY")
