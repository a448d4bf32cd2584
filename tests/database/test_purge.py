"""What was done long ago is emptied in place: its key still answers, and nothing is lost."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.utils import timezone

from reliability.alerts.letters import Scope
from reliability.alerts.measures import MEASURES
from reliability.claim.enqueue import Duplicate, enqueue
from reliability.conf import conf
from reliability.console.conservation import conservation
from reliability.handlers import Event
from reliability.models import (
    AlertRule,
    Attempt,
    Body,
    DeadLetter,
    DestinationAnswer,
    Job,
    ProcessedKey,
    Receipt,
)
from reliability.policy import RunOnce
from reliability.sweep.prune import prune
from reliability.work.dead_letters import Act, Seen, requeue
from reliability.work.drain import drain
from reliability.work.purge import purge_done
from tests.database import world

pytestmark = pytest.mark.django_db

LONG = conf().retention + timedelta(days=1)


def effect(event: Event) -> dict[str, str]:
    Group.objects.create(name=event.key)
    return {"made": event.key}


def fail(event: Event) -> None:
    if event.round == 1:
        raise ValueError("no")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local("local", effect), world.kind("once", fail, policy=RunOnce()):
        yield


def prune_later(by: timedelta = LONG) -> int:
    """Prune as a pass so much later would; return how many jobs were purged."""
    with time_machine.travel(timezone.now() + by, tick=False):
        return prune("command").jobs


def lost() -> int:
    values = MEASURES[AlertRule.Measure.CONSERVATION](
        Scope(tenant=world.tenant()), timezone.now()
    )
    return sum(values.values())


def test_a_job_done_long_ago_leaves_its_key_which_says_when() -> None:
    job = world.job("local", "k", {"secret": 1})
    drain("local")
    job.refresh_from_db()
    assert prune_later() == 1
    assert not Job.objects.exists()
    assert not Body.objects.exists()
    assert not Attempt.objects.exists()
    key = ProcessedKey.objects.get()
    assert key.purged_at is not None
    assert key.done_at == job.ended_at


def test_a_repeat_of_a_purged_key_is_a_duplicate_done_on_that_day_and_does_no_work() -> None:
    world.job("local", "k")
    drain("local")
    done_at = Job.objects.get().ended_at
    assert prune_later() == 1
    answer = enqueue("local", key="k", tenant=world.tenant())
    assert isinstance(answer, Duplicate)
    assert (answer.job_id, answer.state, answer.done_at) == (None, "done", done_at)
    assert drain("local") == 0
    assert Group.objects.filter(name="k").count() == 1


def test_an_event_too_old_to_judge_is_a_duplicate_where_its_key_is_known() -> None:
    source = world.source()
    with world.local("stripe.charge.succeeded", effect):
        world.take_in(source, world.asked("evt_1"))
        drain("local")
        assert prune_later() == 1
        [fate] = world.take_in(
            source, world.asked("evt_1", buried=("expired", "too old to judge"))
        )
    assert (fate.verdict, fate.state) == ("duplicate", "done")
    assert not DeadLetter.objects.exists()


def test_conservation_holds_before_and_after_a_purge() -> None:
    for n in range(3):
        world.job("local", f"k-{n}")
    drain("local")
    before = conservation(world.tenant())
    assert prune_later() == 3
    world.job("local", "k-3")
    after = conservation(world.tenant())
    assert (before.accepted, before.done, before.missing, before.purged) == (3, 3, 0, 0)
    assert (after.accepted, after.done, after.missing, after.purged) == (4, 3, 0, 3)
    assert lost() == 0


def test_a_job_that_vanished_is_missing_for_both_and_is_not_mistaken_for_a_purge() -> None:
    world.job("local", "k")
    Job.objects.all().delete()
    assert conservation(world.tenant()).missing == 1
    assert lost() == 1


def test_only_done_jobs_are_purged_however_old() -> None:
    world.job("once", "dead")
    world.job("local", "ready")
    world.work_outside()
    assert prune_later() == 0
    assert Job.objects.count() == 2
    assert DeadLetter.objects.open().count() == 1


def test_a_recent_job_is_left_alone() -> None:
    job = world.job("local")
    drain("local")
    assert prune_later(conf().retention - timedelta(hours=1)) == 0
    assert Job.objects.filter(pk=job.pk).exists()


def test_the_closed_letters_of_a_done_job_go_with_it() -> None:
    job = world.job("once", "k")
    world.work_outside()
    letter = job.letters.get()
    requeue([Seen(letter.pk, Job.objects.get().version)], Act(world.tenant(), "ann"))
    world.make_due(job)
    world.work_outside()
    assert prune_later() == 1
    assert not DeadLetter.objects.exists()
    assert ProcessedKey.objects.get().done_at is not None


def test_what_may_not_be_purged_does_not_hide_what_may() -> None:
    for n in range(5):
        world.job("once", f"dead-{n}")
    world.work_outside()
    world.job("local", "done")
    drain("local")
    assert purge_done(timezone.now() + LONG, limit=1) == 1


def test_50_copies_over_30_hours_are_one_effect_and_49_duplicates_with_the_first_result() -> (
    None
):
    source, answers = world.source(), []
    start = datetime(2026, 11, 1, tzinfo=UTC)
    with world.local("stripe.charge.succeeded", effect):
        for n in range(50):
            with time_machine.travel(start + n * timedelta(hours=30) / 49, tick=False):
                [fate] = world.take_in(source, world.asked("evt_1"))
                answers.append((fate.verdict, fate.state, fate.result))
                Job.objects.update(run_at=datetime(2026, 10, 1, tzinfo=UTC))
                drain("local")
                prune("command")
    assert answers[0] == ("accepted", "ready", None)
    assert answers[1:] == [("duplicate", "done", {"made": "evt_1"})] * 49
    assert Group.objects.filter(name="evt_1").count() == 1
    assert Receipt.objects.filter(verdict="duplicate").count() == 49


def answer(job: Job, days: int) -> None:
    DestinationAnswer.objects.create(
        tenant_id=job.tenant_id, job=job, token=days, status=200, size_bytes=2, body=b"ok",
        sha256=bytes(32), at=timezone.now() - timedelta(days=days),
    )  # fmt: skip


def test_what_a_destination_answered_goes_after_30_days_unless_its_job_is_not_settled() -> (
    None
):
    done, ready = world.job("local", "k-1"), world.job("once", "k-2")
    drain("local")
    for job in (done, ready):
        for days in (29, 31):
            answer(job, days)
    prune("command")
    kept = DestinationAnswer.objects.order_by("job_id", "token").values_list("job_id", "token")
    assert list(kept) == [(done.pk, 29), (ready.pk, 29), (ready.pk, 31)]
