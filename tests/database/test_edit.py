"""Edit and requeue: the original stays as received, the edit is what the handler gets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from reliability.handlers import Applied, CannotTell, Event, Evidence, NotApplied
from reliability.models import AuditEntry, Body, BodyEdit, DeadLetter, Job, ProcessedKey
from reliability.policy import RunOnce
from reliability.work.dead_letters import Act, Seen, requeue, undo_requeue
from reliability.work.edit import Edit, edit_and_requeue
from tests.database import world

pytestmark = pytest.mark.django_db

SEEN: list[Event] = []
SAID: list[Evidence] = []


def refuse(event: Event) -> None:
    SEEN.append(event)
    raise ValueError("no")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    SEEN.clear()
    SAID[:] = [NotApplied()]
    with world.kind("once", refuse, policy=RunOnce(), verify=lambda _: SAID[-1]):
        yield


@pytest.fixture
def letter() -> DeadLetter:
    job = world.job("once", "k-1", {"to": "jo", "cents": 7})
    world.work_outside()
    return DeadLetter.objects.select_related("job__key").get(job=job)


def act(reason: str = "typo in the address") -> Act:
    return Act(world.tenant(), "ola", reason=reason)


def seen(letter: DeadLetter) -> Seen:
    return Seen(letter.pk, letter.job.version)


def change(letter: DeadLetter, payload: Any, **more: Any) -> Edit:
    base = Body.objects.get(key=letter.job.key, first=True)
    raw = json.dumps(payload).encode()
    return Edit(base_id=base.pk, raw=raw, changed=["/to"], **more)


def work(letter: DeadLetter) -> Event:
    world.make_due(letter.job)
    world.work_outside()
    return SEEN[-1]


def test_the_handler_gets_the_edit_and_is_told_that_it_is_unsigned(letter: DeadLetter) -> None:
    moved = edit_and_requeue(seen(letter), act(), change(letter, {"to": "joe", "cents": 7}))
    assert moved.letter_ids == [letter.pk]
    event = work(letter)
    assert event.payload == {"to": "joe", "cents": 7}
    assert event.headers["Reliability-Edited"] == "2"
    assert event.key == "k-1"


def test_the_original_is_kept_and_cannot_be_overwritten(letter: DeadLetter) -> None:
    original = Body.objects.get(key=letter.job.key)
    edit_and_requeue(seen(letter), act(), change(letter, {"to": "joe"}))
    kept = Body.objects.get(pk=original.pk)
    assert bytes(kept.raw) == bytes(original.raw)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Body.objects.filter(pk=kept.pk).update(raw=b"{}")


def test_the_audit_trail_names_the_act_once_and_the_version_names_what_changed(
    letter: DeadLetter,
) -> None:
    edit_and_requeue(seen(letter), act(), change(letter, {"to": "joe"}))
    assert list(AuditEntry.objects.values_list("act", "reason")) == [
        ("edit and requeue", "typo in the address")
    ]
    edit = BodyEdit.objects.get()
    assert (edit.number, edit.changed, edit.actor) == (2, ["/to"], "ola")


def test_an_edit_of_a_letter_that_moved_on_leaves_nothing_behind(letter: DeadLetter) -> None:
    edit = change(letter, {"to": "joe"})
    assert requeue([seen(letter)], Act(world.tenant(), "second")).letter_ids
    moved = edit_and_requeue(seen(letter), act(), edit)
    assert "second was first" in moved.refused[0].why
    assert not BodyEdit.objects.exists()
    assert work(letter).payload == {"to": "jo", "cents": 7}
    assert len(SEEN) == 2, "the original alone was sent, once more"


def test_of_two_edits_of_one_version_the_second_is_refused(letter: DeadLetter) -> None:
    first, second = change(letter, {"to": "a"}), change(letter, {"to": "b"})
    edit_and_requeue(seen(letter), act(), first)
    version = Job.objects.get().version
    undo_requeue(Seen(letter.pk, version), act())
    moved = edit_and_requeue(Seen(letter.pk, version + 1), act(), second)
    assert "somebody edited it since" in moved.refused[0].why
    assert BodyEdit.objects.count() == 1
    assert Job.objects.get().state == "dead"


@pytest.mark.parametrize("wrong", ["no reason", "no change", "too large"])
def test_an_edit_without_a_reason_or_a_change_or_too_large_is_refused(
    letter: DeadLetter, wrong: str
) -> None:
    base = Body.objects.get(key=letter.job.key)
    edit = Edit(
        base_id=base.pk,
        raw=b"x" * (300_000 if wrong == "too large" else 3),
        changed=[] if wrong == "no change" else ["/to"],
    )
    with pytest.raises(ValueError, match=r"Say why|Nothing was changed|at most"):
        edit_and_requeue(seen(letter), act("" if wrong == "no reason" else "why"), edit)
    assert not BodyEdit.objects.exists()


def test_a_new_downstream_key_is_given_only_on_evidence(letter: DeadLetter) -> None:
    before = letter.job.key.downstream_key
    edit = change(letter, {"to": "joe"}, new_generation=True)
    for said in (Applied("ch_1"), CannotTell()):
        SAID.append(said)
        moved = edit_and_requeue(seen(letter), act(), edit)
        assert "nothing shows" in moved.refused[0].why
    SAID.append(NotApplied())
    assert edit_and_requeue(seen(letter), act(), edit).letter_ids
    assert ProcessedKey.objects.get().downstream_key == f"{before}/2"
    assert BodyEdit.objects.get().key_before == before
    assert str(work(letter).downstream_key) == f"{before}/2"


def test_no_new_downstream_key_while_the_fate_of_a_start_is_unknown(
    letter: DeadLetter,
) -> None:
    DeadLetter.objects.update(outcome="unknown")
    edit = change(letter, {"to": "joe"}, new_generation=True)
    moved = edit_and_requeue(seen(letter), act(), edit)
    assert "fate is unknown" in moved.refused[0].why


def test_there_is_one_current_body_after_every_edit(letter: DeadLetter) -> None:
    edit_and_requeue(seen(letter), act(), change(letter, {"to": "a"}))
    work(letter)
    second = DeadLetter.objects.select_related("job__key").get(status="open")
    edit_and_requeue(seen(second), act(), change(second, {"to": "b"}))
    assert Body.objects.filter(first=True).count() == 1
    assert list(BodyEdit.objects.order_by("number").values_list("number", flat=True)) == [2, 3]
