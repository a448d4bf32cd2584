"""An existing Celery task as a kind: once per key, and no retries of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import Celery
from django.contrib.auth.models import Group

from reliability import adoption, celery_task
from reliability.adoption import Adopted, no_adopted_task_retries_itself
from reliability.claim.enqueue import Duplicate
from reliability.errors import KeyNotAccepted
from reliability.handlers import Event, LocalTransaction
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db

app = Celery("shop", set_as_current=False)


@app.task(name="shop.book")
def book(amount: int, *, currency: str = "EUR") -> str:
    Group.objects.create(name=f"{amount} {currency}")
    return "booked"


@app.task(name="shop.keyed")
def keyed(amount: int, event: Event | None = None) -> str:
    return event.downstream_key if event else "none"


@app.task(name="shop.retrying", bind=True)
def retrying(self: Any) -> None:
    raise self.retry(countdown=5)


@app.task(name="shop.auto", autoretry_for=(ValueError,))
def auto() -> None:
    raise ValueError


@contextmanager
def adopted(task: Any, **declared: Any) -> Iterator[Adopted]:
    made = celery_task(task, **({"sink": LocalTransaction()} | declared))
    try:
        yield made
    finally:
        adoption.release(made)


def test_an_adopted_task_runs_once_per_key_with_its_arguments() -> None:
    world.tenant()
    with adopted(book) as task:
        task.enqueue("order-1", 250, currency="USD", tenant="acme")
        again = task.enqueue("order-1", 250, currency="USD", tenant="acme")
        drain("local")
        last = task.enqueue("order-1", 250, currency="USD", tenant="acme")
    assert isinstance(again, Duplicate)
    assert isinstance(last, Duplicate)
    assert last.result == "booked"
    assert Group.objects.filter(name="250 USD").count() == 1


def test_a_task_that_asks_for_the_event_is_given_its_downstream_key() -> None:
    with adopted(keyed) as task:
        task.enqueue("order-1", 250, tenant=world.tenant())
        drain("local")
        answer = task.enqueue("order-1", 250, tenant=world.tenant())
    assert isinstance(answer, Duplicate)
    assert answer.result == "order-1"


def test_a_task_called_as_before_still_works() -> None:
    with adopted(keyed):
        assert keyed(250) == "none"


@pytest.mark.parametrize(
    ("task", "why"), [(retrying, "calls .retry(...)"), (auto, "declares autoretry_for")]
)
def test_a_task_that_retries_itself_is_refused_at_start(task: Any, why: str) -> None:
    with adopted(task), adopted(book):
        [found] = no_adopted_task_retries_itself()
    assert (found.id, why in found.msg) == ("reliability.E014", True)


def test_an_adopted_task_with_retries_needs_a_sink_like_any_kind() -> None:
    with adopted(book, sink=None) as task, pytest.raises(KeyNotAccepted, match="no sink"):
        task.enqueue("order-1", 250, tenant=world.tenant())
