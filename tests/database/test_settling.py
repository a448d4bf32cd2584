"""The proof's scripted operator looks at the counters, never at our own word."""

from collections.abc import Iterator
from typing import Any

import pytest

from reliability.errors import PermanentError
from reliability.handlers import DownstreamKey, Event
from reliability.models import Job
from reliability.policy import RunOnce
from reliability.proof.mails import FOLLOW_UP, message_id
from reliability.proof.settle import settle
from tests.database import world

pytestmark = pytest.mark.django_db


class Counters:
    """Says which mails were taken, as the sink does; no request is known."""

    def __init__(self, *taken: str) -> None:
        self.taken = taken

    def mails(self) -> list[dict[str, str]]:
        return [{"message_id": one} for one in self.taken]

    def effects_under(self, _key: str) -> int:
        return 0


def answer_lost(event: Event) -> None:
    raise PermanentError(f"the line went dead: {event.key}")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.kind(FOLLOW_UP, answer_lost, policy=RunOnce()),
        world.kind("other", answer_lost, policy=RunOnce()),
    ):
        yield


def settled(job: Job, counters: Any, *, seconds: float = 0.0) -> str:
    world.work_outside()
    settle(counters, seconds=seconds)
    job.refresh_from_db()
    return job.state


def test_a_mail_that_failed_and_was_taken_is_resolved() -> None:
    job = world.job(FOLLOW_UP)
    taken = message_id(DownstreamKey(job.key.downstream_key))
    assert settled(job, Counters(taken)) == "resolved"


def test_a_mail_that_failed_and_was_not_taken_is_requeued() -> None:
    job = world.job(FOLLOW_UP)
    assert settled(job, Counters()) == "ready"


def test_any_other_failed_letter_is_left_as_it_is() -> None:
    job = world.job("other")
    assert settled(job, Counters()) == "dead"
