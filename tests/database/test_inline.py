"""Claim, do and complete in one call: once, whatever happens in between."""

from typing import Any

import pytest
from django.db import transaction

from reliability.claim.enqueue import Duplicate, enqueue
from reliability.errors import KeyNotAccepted
from reliability.handlers import Event, LocalTransaction, ProviderHeader
from reliability.inline import Did, once
from reliability.models import Job
from reliability.sweep import sweep
from reliability.work.dead_letters import Act, Seen, requeue
from reliability.work.drain import drain
from reliability.work.lease import take, take_alone
from tests.database import world

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs."""


def killed(_key: str) -> None:
    raise Killed


def test_it_is_done_once_and_the_second_call_gets_the_firsts_result() -> None:
    asked: list[str] = []

    def pay(key: str) -> dict[str, int]:
        asked.append(key)
        return {"paid": len(asked)}

    world.tenant()
    first = once("order-17", pay, tenant="acme")
    second = once("order-17", pay, tenant="acme")
    assert isinstance(first, Did)
    assert first.result == {"paid": 1}
    assert second == Duplicate(first.job_id, "done", {"paid": 1})
    assert asked == ["order-17"]


def test_no_worker_takes_what_its_caller_is_doing() -> None:
    taken: list[Any] = []

    def look(_key: str) -> None:
        job = Job.objects.get()
        taken.append((job.state, take("outside", limit=1), take_alone("outside")))

    once("k", look, tenant=world.tenant())
    assert taken == [("running", [], None)]


def test_a_caller_that_is_killed_leaves_a_letter_of_unknown_outcome_and_no_second_try() -> (
    None
):
    with pytest.raises(Killed):
        once("k", killed, tenant=world.tenant())
    job = Job.objects.get()
    assert job.state == "running"
    world.end_lease(job)
    assert sweep("command").buried == 1
    job.refresh_from_db()
    assert (job.state, job.starts, job.letters.get().outcome) == ("dead", 1, "unknown")
    again = once("k", lambda key: 1, tenant=world.tenant())
    assert again == Duplicate(job.public_id, "dead", None)


def test_a_kill_is_unknown_even_where_the_kinds_handler_could_be_repeated() -> None:
    with world.kind("pay", lambda event: None, sink=ProviderHeader()):
        with pytest.raises(Killed):
            once("k", killed, tenant=world.tenant(), kind="pay")
        world.end_lease(Job.objects.get())
        sweep("command")
    assert Job.objects.get().letters.get().outcome == "unknown"


def test_an_error_reaches_the_caller_and_is_a_letter_a_person_may_requeue() -> None:
    def refuse(_key: str) -> None:
        raise ValueError("the provider said no")

    with world.kind("pay", lambda event: "by hand", sink=LocalTransaction()):
        with pytest.raises(ValueError, match="said no"):
            once("k", refuse, tenant=world.tenant(), kind="pay")
        job = Job.objects.get()
        letter = job.letters.get()
        assert (letter.outcome, letter.error_type) == ("failed", "ValueError")
        requeue([Seen(letter.pk, job.version)], Act(world.tenant(), "ann"))
        world.make_due(job)
        world.work_outside()
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", "by hand")


def test_the_key_is_shared_with_enqueue_of_the_same_kind() -> None:
    def handle(event: Event) -> None:
        raise AssertionError("it was done inline")

    with world.local("pay", handle):
        once("k", lambda key: 7, tenant=world.tenant(), kind="pay")
        answer = enqueue("pay", key="k", tenant=world.tenant())
        assert drain("local") == 0
    assert isinstance(answer, Duplicate)
    assert answer.result == 7


@pytest.mark.django_db(transaction=True)
def test_inside_a_transaction_it_is_refused_before_anything_is_done() -> None:
    asked: list[str] = []
    world.tenant()
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        once("k", asked.append, tenant="acme")
    assert (asked, Job.objects.count()) == ([], 0)


def test_a_bad_key_is_refused() -> None:
    with pytest.raises(KeyNotAccepted):
        once("", print, tenant=world.tenant())
