"""What a person does with letters: once, by version, with one audit entry an act."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reliability.conf import conf
from reliability.handlers import Applied, Event, NotApplied, ProviderHeader
from reliability.models import AuditEntry, DeadLetter, Job
from reliability.policy import Backoff, RunOnce
from reliability.work.dead_letters import (
    Act,
    Moved,
    Seen,
    discard,
    requeue,
    restore,
    undo_requeue,
)
from reliability.work.lease import take
from tests.database import world

pytestmark = pytest.mark.django_db


def refuse(event: Event) -> None:
    raise ValueError("no")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.kind("once", refuse, policy=RunOnce()):
        yield


def letter(key: str = "k-1", kind: str = "once") -> DeadLetter:
    job = world.job(kind, key)
    world.work_outside()
    return DeadLetter.objects.select_related("job").get(job=job, status="open")


def seen(letter: DeadLetter) -> Seen:
    return Seen(letter.pk, letter.job.version)


def act(reason: str = "") -> Act:
    return Act(world.tenant(), "ola", reason=reason)


def acts() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("act", flat=True))


def test_a_requeue_gives_a_new_round_with_fresh_attempts_after_the_time_to_undo() -> None:
    one = letter()
    moved = requeue([seen(one)], act())
    job = Job.objects.get(pk=one.job_id)
    assert moved.letter_ids == [one.pk]
    assert (job.state, job.round, job.round_starts, job.starts) == ("ready", 2, 1, 1)
    wait = job.run_at - timezone.now()
    assert conf().undo - timedelta(seconds=2) < wait <= conf().undo
    assert take("outside", limit=1) == []
    world.make_due(job)
    world.work_outside()
    assert job.letters.get(round=2).status == "open"
    assert job.letters.get(round=1).status == "requeued"


def test_the_second_of_two_clicks_changes_nothing_and_is_told_who_was_first() -> None:
    one = letter()
    assert requeue([seen(one)], act()).letter_ids == [one.pk]
    second = requeue([seen(one)], Act(world.tenant(), "second"))
    assert second.letter_ids == []
    assert "ola was first: requeued" in second.refused[0].why
    assert acts() == ["requeue"]
    assert Job.objects.get(pk=one.job_id).round == 2


def test_a_stale_version_is_refused_even_while_the_letter_is_open() -> None:
    one = letter()
    undo_me = requeue([seen(one)], act())
    assert undo_me.letter_ids
    one.job.refresh_from_db()
    undo_requeue(seen(one), act())
    stale = requeue([Seen(one.pk, 1)], act())
    assert stale.letter_ids == []
    assert DeadLetter.objects.get(pk=one.pk).status == "open"


def test_undo_opens_the_same_letter_again_while_nothing_has_started() -> None:
    one = letter()
    requeue([seen(one)], act())
    one.job.refresh_from_db()
    assert undo_requeue(seen(one), act()) == Moved([one.pk], [])
    one.refresh_from_db()
    job = Job.objects.get(pk=one.job_id)
    assert (one.status, job.state, job.round) == ("open", "dead", 1)
    assert acts() == ["requeue", "undo requeue"]


def test_undo_comes_too_late_once_the_job_has_started() -> None:
    one = letter()
    requeue([seen(one)], act())
    one.job.refresh_from_db()
    as_seen = seen(one)
    world.make_due(one.job)
    world.work_outside()
    assert undo_requeue(as_seen, act()).letter_ids == []


def test_a_discard_needs_a_reason_keeps_the_key_and_can_be_restored() -> None:
    one = letter()
    with pytest.raises(ValueError, match="Say why"):
        discard([seen(one)], act("  "))
    discard([seen(one)], act("test traffic"))
    one.refresh_from_db()
    one.job.refresh_from_db()
    assert (one.status, one.job.state, one.closed_reason) == (
        "discarded",
        "discarded",
        "test traffic",
    )
    restore(seen(one), act())
    one.refresh_from_db()
    assert (one.status, Job.objects.get(pk=one.job_id).state) == ("open", "dead")
    assert acts() == ["discard", "restore"]


def test_a_discarded_letter_whose_payload_was_purged_cannot_be_restored() -> None:
    one = letter()
    discard([seen(one)], act("test traffic"))
    one.job.key.bodies.all().delete()
    one.refresh_from_db()
    one.job.refresh_from_db()
    assert restore(seen(one), act()).letter_ids == []
    assert Job.objects.get(pk=one.job_id).state == "discarded"


def test_discard_and_requeue_of_one_letter_have_one_winner() -> None:
    one = letter()
    discard([seen(one)], act("noise"))
    assert requeue([seen(one)], act()).letter_ids == []
    assert Job.objects.get(pk=one.job_id).state == "discarded"


def test_a_selection_is_one_act_with_its_count_and_one_refusal_a_letter() -> None:
    letters = [letter(f"k-{n}") for n in range(3)]
    requeue([seen(letters[0])], act())
    moved = requeue([seen(one) for one in letters], act())
    assert moved.letter_ids == [letters[1].pk, letters[2].pk]
    assert [refusal.letter_id for refusal in moved.refused] == [letters[0].pk]
    entry = AuditEntry.objects.order_by("pk").last()
    assert entry is not None
    assert (entry.act, entry.facts["count"]) == ("requeue", 2)


def test_a_foreign_letter_refuses_the_whole_selection() -> None:
    mine = letter()
    stranger = Act(world.tenant("borealis"), "eve")
    moved = requeue([seen(mine)], stranger)
    assert moved.letter_ids == []
    assert Job.objects.get(pk=mine.job_id).state == "dead"
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    ("evidence", "allowed"),
    [(NotApplied(), True), (Applied("ch_1"), False), (ConnectionError("down"), False)],
)
def test_after_its_window_a_letter_is_requeued_only_on_evidence(
    evidence: NotApplied | Applied | Exception, *, allowed: bool
) -> None:
    def verify(event: Event) -> NotApplied | Applied:
        if isinstance(evidence, Exception):
            raise evidence
        return evidence

    policy = Backoff(first=timedelta(hours=1), cap=timedelta(hours=1), attempts=2)
    with world.kind("pay", refuse, sink=ProviderHeader(), policy=policy, verify=verify):
        job = world.job("pay")
        for _ in range(2):
            world.make_due(job)
            world.work_outside()
        Job.objects.filter(pk=job.pk).update(not_after=timezone.now() - timedelta(hours=1))
        one = DeadLetter.objects.select_related("job").get()
        moved = requeue([seen(one)], act())
    assert bool(moved.letter_ids) is allowed
    if not allowed:
        assert "window closed" in moved.refused[0].why
    job.refresh_from_db()
    assert (job.not_after is None) is allowed


@pytest.mark.django_db(transaction=True)
def test_the_audit_chain_names_an_entry_that_was_changed() -> None:
    one = letter()
    requeue([seen(one)], act())
    assert list(AuditEntry.objects.broken(world.tenant())) == []
    world.query("ALTER TABLE reliability_auditentry DISABLE TRIGGER audit_is_append_only")
    try:
        entry = AuditEntry.objects.get()
        AuditEntry.objects.filter(pk=entry.pk).update(actor="somebody else")
        assert list(AuditEntry.objects.broken(world.tenant())) == [entry]
    finally:
        world.query("ALTER TABLE reliability_auditentry ENABLE TRIGGER audit_is_append_only")


def test_the_audit_trail_cannot_be_rewritten() -> None:
    requeue([seen(letter())], act())
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEntry.objects.update(actor="somebody else")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEntry.objects.all().delete()
