"""What hosts test their handlers with: it passes the good ones and names what the bad ones do."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group

from reliability.handlers import (
    DedupeWindow,
    Event,
    LocalTransaction,
    ProviderHeader,
    Sink,
    UniqueConstraint,
)
from reliability.policy import Backoff, RunOnce
from reliability.testing import assert_effectively_once
from tests.database import world

pytestmark = pytest.mark.django_db

DAYS = timedelta(days=2)
SOON = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=1), attempts=3)


class Provider:
    """Counts effects by the key it was given; without a key each request is a new effect."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.requests = 0

    def pay(self, key: str = "") -> str:
        self.requests += 1
        self.effects[key or f"request {self.requests}"] = 1
        return "tr_1"

    def look(self) -> object:
        return dict(self.effects)


@pytest.fixture
def provider() -> Provider:
    return Provider()


def check(
    handle: Any, *, sink: Sink | None = None, provider: Provider | None = None, **declared: Any
) -> None:
    look = provider.look if provider else None
    with world.kind("pay", handle, sink=sink, **({"policy": SOON} | declared)):
        assert_effectively_once("pay", {"amount": 5}, effects=look)


def insert(event: Event) -> None:
    Group.objects.create(name=f"paid {event.payload['amount']} under {event.key}")


def test_a_local_handler_passes() -> None:
    check(insert, sink=LocalTransaction())
    assert Group.objects.filter(name__startswith="paid 5 under ").count() == 1


def test_a_handler_whose_insert_rejects_the_repeat_passes() -> None:
    check(insert, sink=UniqueConstraint("auth.Group", "name"))
    assert Group.objects.filter(name__startswith="paid 5 under ").count() == 1


def test_a_handler_that_sends_its_key_passes(provider: Provider) -> None:
    check(
        lambda event: provider.pay(event.downstream_key),
        sink=ProviderHeader(), provider=provider, limit=timedelta(seconds=10),
    )  # fmt: skip
    assert provider.requests == 3


def test_a_handler_that_sends_no_key_is_found_out(provider: Provider) -> None:
    with pytest.raises(AssertionError, match="after a lost worker it took effect again"):
        check(
            lambda event: provider.pay(), sink=ProviderHeader(), provider=provider,
            limit=timedelta(seconds=10),
        )  # fmt: skip


def test_a_key_that_changes_with_each_attempt_is_found_out(provider: Provider) -> None:
    with pytest.raises(AssertionError, match="took effect again"):
        check(
            lambda event: provider.pay(f"{event.key} {provider.requests}"),
            sink=ProviderHeader(), provider=provider, limit=timedelta(seconds=10),
        )  # fmt: skip


def test_marked_effects_pass_before_and_after(provider: Provider) -> None:
    def handle(event: Event) -> None:
        event.once("pay", lambda key: provider.pay())

    for record in ("before", "after"):
        sink = DedupeWindow(window=DAYS, record=record)
        check(handle, sink=sink, provider=provider)
    assert provider.requests == 2


def test_a_run_once_kind_passes_and_is_asked_once(provider: Provider) -> None:
    check(lambda event: provider.pay(), provider=provider, policy=RunOnce())
    assert provider.requests == 1


def test_a_local_handler_that_inserts_again_under_another_name_is_found_out() -> None:
    def handle(event: Event) -> None:
        Group.objects.create(name=f"paid {Group.objects.count()}")

    with pytest.raises(AssertionError, match="a repeat took effect again"):
        check(handle, sink=UniqueConstraint("auth.Group", "name"))


def test_a_handler_without_a_visible_effect_is_found_out() -> None:
    with pytest.raises(AssertionError, match="no effect that can be seen"):
        check(lambda event: None, sink=LocalTransaction())


def test_a_handler_that_fails_is_named() -> None:
    def handle(event: Event) -> None:
        raise ValueError("no such account")

    with pytest.raises(AssertionError, match="failed: ValueError"):
        check(handle, sink=LocalTransaction())


def test_an_outside_kind_must_say_what_happened() -> None:
    with pytest.raises(ValueError, match="pass effects="):
        check(lambda event: None, sink=ProviderHeader(), limit=timedelta(seconds=10))
