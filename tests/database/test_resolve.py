"""A letter may be ended as applied: with a reason, once, and for good."""

from collections.abc import Iterator

import pytest

from reliability.handlers import Event
from reliability.models import AuditEntry, DeadLetter, Job
from reliability.policy import RunOnce
from reliability.work.dead_letters import Act, Seen, requeue, resolve
from tests.database import world

pytestmark = pytest.mark.django_db


def refuse(event: Event) -> None:
    raise ValueError("no")


@pytest.fixture
def letter() -> Iterator[DeadLetter]:
    with world.kind("once", refuse, policy=RunOnce()):
        job = world.job("once")
        world.work_outside()
        yield DeadLetter.objects.select_related("job").get(job=job)


def test_a_resolved_letter_keeps_its_reason_and_never_runs_again(letter: DeadLetter) -> None:
    seen = Seen(letter.pk, letter.job.version)

    moved = resolve([seen], Act(world.tenant(), "ola", reason="the mail is in the log"))

    assert (moved.letter_ids, moved.refused) == ([letter.pk], [])
    letter.refresh_from_db()
    assert (letter.status, letter.closed_by, letter.closed_reason) == (
        "resolved",
        "ola",
        "the mail is in the log",
    )
    assert Job.objects.get(pk=letter.job_id).state == "resolved"
    assert AuditEntry.objects.get().act == "resolve"
    assert requeue([seen], Act(world.tenant(), "kim")).letter_ids == []


def test_a_letter_is_not_resolved_without_a_reason(letter: DeadLetter) -> None:
    with pytest.raises(ValueError, match="Say why"):
        resolve([Seen(letter.pk, letter.job.version)], Act(world.tenant(), "ola"))
    assert Job.objects.get(pk=letter.job_id).state == "dead"
