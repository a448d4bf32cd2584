"""A person's data can be erased; that its event took effect once stays known."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.test import Client

from reliability.handlers import Event
from reliability.models import (
    Attempt,
    AuditEntry,
    Body,
    DeadLetter,
    Job,
    Operation,
    ProcessedKey,
    Source,
)
from reliability.policy import RunOnce
from reliability.work.dead_letters import Act, Seen, requeue
from reliability.work.erase import Erased, erase
from tests.database import senders, world

pytestmark = pytest.mark.django_db

SUBJECT = "zoë@example.org"
KIND = "stripe.charge.succeeded"


@pytest.fixture
def source() -> Source:
    return senders.source("stripe")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    def handle(event: Event) -> Any:
        if event.payload["fail"]:
            raise ValueError(f"no account for {event.payload['email']}")
        return {"mailed": event.payload["email"]}

    with world.kind(KIND, handle, policy=RunOnce()):
        yield


def deliver(
    source: Source, key: str, *, email: str = SUBJECT, fail: bool = False, ascii_: bool = True
) -> HttpResponse:
    event = {"id": key, "type": "charge.succeeded", "email": email, "fail": fail,
             "data": {"object": {"id": f"ch_{key}", "amount": 5, "currency": "eur"}}}  # fmt: skip
    body = json.dumps(event, ensure_ascii=ascii_).encode()
    return Client().post(  # type: ignore[return-value]
        f"/hooks/{source.endpoint_token}/", body, "application/json",
        headers=senders.sign("stripe", body),
    )  # fmt: skip


def act() -> Act:
    return Act(world.tenant(), "ann", reason="asked by letter of 2 November")


def everything() -> str:
    tables = (
        "body", "job", "attempt", "deadletter", "destinationanswer", "auditentry",
        "processedkey", "effect",
    )  # fmt: skip
    rows = [world.query(f"SELECT t::text FROM reliability_{name} t") for name in tables]
    raws = [bytes(raw).decode() for raw in Body.objects.values_list("raw", flat=True)]
    return str(rows) + str(raws)


def test_nothing_of_the_subject_is_left_and_a_repeat_is_still_a_duplicate(
    source: Source,
) -> None:
    deliver(source, "evt_1")
    deliver(source, "evt_2", fail=True, ascii_=False)
    deliver(source, "evt_3", email="other@example.org")
    world.work_outside()
    assert SUBJECT in everything()
    assert erase(SUBJECT, act()) == Erased(keys=2, bodies=2, letters=1)
    assert SUBJECT not in everything()
    assert "zo\\u00eb" not in everything()
    assert (ProcessedKey.objects.count(), Operation.objects.count()) == (3, 3)
    again = deliver(source, "evt_1")
    assert json.loads(again.content)["status"] == "duplicate"
    assert SUBJECT not in everything()
    assert Body.objects.get().key.key == "evt_3"


def test_the_audit_trail_names_the_reason_and_not_the_subject(source: Source) -> None:
    deliver(source, "evt_1")
    erase(SUBJECT, act())
    entry = AuditEntry.objects.get(act="erase")
    assert (entry.reason, entry.facts["keys"]) == ("asked by letter of 2 November", 1)
    assert len(entry.about_id) == 64


def test_an_erased_letter_cannot_be_requeued_and_says_why(source: Source) -> None:
    deliver(source, "evt_1", fail=True)
    world.work_outside()
    erase(SUBJECT, act())
    letter = DeadLetter.objects.get()
    moved = requeue([Seen(letter.pk, letter.job.version)], act())
    assert moved.letter_ids == []
    assert moved.refused[0].why.startswith("its body was erased on ")


def test_a_job_that_has_not_run_becomes_a_letter_and_its_handler_is_not_called(
    source: Source,
) -> None:
    deliver(source, "evt_1")
    erase(SUBJECT, act())
    world.work_outside()
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.job.state) == ("failed", "dead")
    assert "its body was erased" in letter.message
    assert Attempt.objects.get().error_type == "PermanentError"


def test_another_tenants_events_are_not_touched(source: Source) -> None:
    deliver(source, "evt_1")
    other = Act(world.tenant("borealis"), "bob", reason="asked")
    assert erase(SUBJECT, other) == Erased()
    assert Body.objects.count() == 1


def test_a_dry_run_counts_and_changes_nothing(source: Source) -> None:
    deliver(source, "evt_1")
    out = StringIO()
    call_command("erase", "--tenant", "acme", "--subject", SUBJECT, "--reason", "asked",
                 "--dry-run", "--json", stdout=out)  # fmt: skip
    told = {"done": "would be erased", "keys": 1, "bodies": 1, "letters": 0}
    assert json.loads(out.getvalue()) == told
    assert (Body.objects.count(), AuditEntry.objects.filter(act="erase").count()) == (1, 0)


@pytest.mark.parametrize(("subject", "reason"), [("abc", "asked"), ("abcd", " ")])
def test_a_short_subject_or_no_reason_is_refused(subject: str, reason: str) -> None:
    world.tenant()
    with pytest.raises(CommandError):
        call_command("erase", "--tenant", "acme", "--subject", subject, "--reason", reason)


def test_a_worked_jobs_result_goes_and_its_state_stays(source: Source) -> None:
    deliver(source, "evt_1")
    world.work_outside()
    assert Job.objects.get().result == {"mailed": SUBJECT}
    erase(SUBJECT, act())
    job = Job.objects.get()
    assert (job.state, job.result) == ("done", None)
