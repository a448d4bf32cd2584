"""A source that answers after work: done and 200, or nothing left and 503."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from reliability.claim import door
from reliability.handlers import Event, ProviderHeader
from reliability.models import Attempt, DeadLetter, Delivery, Job, ProcessedKey, Source
from tests.database import senders, world

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "stripe.invoice.paid"
AFTER = Source.Answer.AFTER_WORK


@pytest.fixture
def source() -> Source:
    return senders.source("stripe", answer=AFTER)


def deliver(source: Source, key: str = "evt_1", **more: Any) -> HttpResponse:
    body = json.dumps({"id": key, "type": "invoice.paid"} | more).encode()
    return Client().post(  # type: ignore[return-value]
        f"/hooks/{source.endpoint_token}/", body, "application/json",
        headers=senders.sign("stripe", body),
    )  # fmt: skip


def write(event: Event) -> str:
    Group.objects.create(name=event.key)
    return "written"


def failing(times: int) -> Callable[[Event], str]:
    left = [times]

    def handle(event: Event) -> str:
        Group.objects.create(name=event.key)
        left[0] -= 1
        if left[0] >= 0:
            raise ValueError("not yet")
        return "written"

    return handle


def test_it_answers_200_when_the_work_is_done(source: Source) -> None:
    with world.local(KIND, write):
        answer = deliver(source)
    assert (answer.status_code, json.loads(answer.content)["status"]) == (200, "accepted")
    job = Job.objects.get()
    assert (job.state, job.result, Attempt.objects.get().outcome) == (
        "done",
        "written",
        "done",
    )
    assert Group.objects.filter(name="evt_1").exists()


def test_a_failure_is_503_and_leaves_neither_claim_nor_effect(source: Source) -> None:
    with world.local(KIND, failing(times=1)):
        answer = deliver(source)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert (ProcessedKey.objects.count(), Job.objects.count()) == (0, 0)
        assert (Delivery.objects.count(), Attempt.objects.count()) == (0, 0)
        assert not Group.objects.filter(name="evt_1").exists()
        assert deliver(source).status_code == 200
    assert Group.objects.filter(name="evt_1").count() == 1


def test_a_repeat_of_what_is_done_is_a_duplicate_and_runs_nothing(source: Source) -> None:
    with world.local(KIND, write):
        deliver(source)
        answer = deliver(source)
    assert json.loads(answer.content)["status"] == "duplicate"
    assert Attempt.objects.count() == 1


def test_a_paused_source_and_an_unknown_routed_kind_are_503_and_unclaimed(
    source: Source,
) -> None:
    Source.objects.update(routes={"invoice.paid": "billing.nobody"})
    assert deliver(source).status_code == 503
    Source.objects.update(routes={}, paused_at=timezone.now())
    door.forget()
    with world.local(KIND, write):
        assert deliver(source).status_code == 503
    assert ProcessedKey.objects.count() == 0


def test_what_cannot_be_read_or_routed_is_a_letter_and_200(source: Source) -> None:
    assert deliver(source).status_code == 200
    assert DeadLetter.objects.get().outcome == "unroutable"


def test_an_outside_effect_is_left_to_the_workers(source: Source) -> None:
    with world.kind(KIND, write, sink=ProviderHeader()):
        assert deliver(source).status_code == 200
    assert (Job.objects.get().state, Group.objects.filter(name="evt_1").exists()) == (
        "ready",
        False,
    )
