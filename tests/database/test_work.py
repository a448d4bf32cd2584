"""A job's life, one move at a time, on real PostgreSQL."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection
from django.utils import timezone

from reliability.errors import PermanentError, RetryLater
from reliability.handlers import Event, ProviderHeader
from reliability.models import Attempt, DeadLetter, Job
from reliability.policy import Backoff, RunOnce
from reliability.sweep import sweep
from reliability.work.drain import drain
from reliability.work.lease import take, take_alone
from reliability.work.settle import Done, finish, finish_late, intend
from tests.database import world

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
TWICE = Backoff(first=HOUR, cap=HOUR, attempts=2)


def effect(event: Event) -> None:
    """Leave one row, as a local handler would."""
    Group.objects.create(name=event.key)


def fail(event: Event) -> None:
    Group.objects.create(name=f"{event.key} half done")
    raise ValueError("the downstream said no")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with ExitStack() as stack:
        for made in (
            world.local("local", effect),
            world.local("broken", fail, policy=TWICE),
            world.kind("outside", effect, sink=ProviderHeader(), policy=TWICE),
            world.kind("once", fail, policy=RunOnce()),
        ):
            stack.enter_context(made)
        yield


def test_a_local_job_is_done_once_with_its_rows() -> None:
    job = world.job("local")
    assert drain("local") == 1
    job.refresh_from_db()
    assert (job.state, job.starts, job.token > 0) == ("done", 1, True)
    assert Group.objects.filter(name="k-1").count() == 1
    assert [a.outcome for a in job.attempts.all()] == ["done"]
    assert drain("local") == 0


def test_a_failed_job_leaves_no_rows_and_waits_with_jitter_below_the_cap() -> None:
    job = world.job("broken")
    before = timezone.now()
    drain("local")
    job.refresh_from_db()
    assert job.state == "ready"
    assert before <= job.run_at <= timezone.now() + HOUR
    assert not Group.objects.filter(name__contains="half done").exists()
    attempt = job.attempts.get()
    assert (attempt.outcome, attempt.error_type) == ("failed", "ValueError")
    assert attempt.message == "the downstream said no"


def test_attempts_used_up_become_one_letter_in_the_same_transaction() -> None:
    job = world.job("broken")
    for _ in range(2):
        world.make_due(job)
        drain("local")
    job.refresh_from_db()
    letter = job.letters.get()
    assert job.state == "dead"
    assert (letter.outcome, letter.reason) == ("failed", "2 of 2 attempts failed")
    assert job.attempts.count() == 2


def test_one_failure_in_a_batch_costs_its_neighbours_nothing() -> None:
    jobs = [world.job("local", f"good-{n}") for n in range(5)]
    broken = world.job("broken", "bad")
    jobs += [world.job("local", f"good-{n}") for n in range(5, 9)]
    drain("local")
    assert {Job.objects.get(pk=job.pk).state for job in jobs} == {"done"}
    assert Job.objects.get(pk=broken.pk).state == "ready"
    assert Group.objects.filter(name__startswith="good").count() == 9


def test_a_bad_foreign_key_fails_its_own_job_before_the_batch_commits() -> None:
    def orphan(event: Event) -> None:
        Attempt.objects.create(
            tenant=world.tenant(), job_id=10**12, round=1, number=1, token=1, outcome="done",
            started_at=timezone.now(), ended_at=timezone.now(),
        )  # fmt: skip

    with world.local("orphan", orphan, policy=TWICE):
        bad, good = world.job("orphan", "bad"), world.job("local", "good")
        drain("local")
        assert Job.objects.get(pk=good.pk).state == "done"
        assert Job.objects.get(pk=bad.pk).attempts.get().error_type == "IntegrityError"


def test_a_stale_worker_cannot_finish_a_job_the_sweep_took_back() -> None:
    job = world.job("local")
    [stale] = take("local", limit=1)
    world.end_lease(job)
    assert sweep("command").rescued == 1
    assert take("local", limit=1) == [], "a job with a crash behind it is never in a batch"
    assert finish([Done(stale, None, timezone.now())]) == set()
    assert Job.objects.get(pk=job.pk).state == "ready"
    drain("local")
    job.refresh_from_db()
    assert (job.state, job.starts, job.crashes) == ("done", 2, 1)


def test_a_late_result_is_kept_when_nobody_newer_started() -> None:
    job = world.job("outside")
    [stale] = take("outside", limit=1)
    world.end_lease(job)
    sweep("command")
    assert finish_late(Done(stale, {"id": "ch_1"}, timezone.now()))
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"id": "ch_1"})
    assert [a.outcome for a in job.attempts.order_by("pk")] == ["lost", "late"]


def test_a_late_result_is_refused_once_somebody_newer_started() -> None:
    job = world.job("outside")
    [stale] = take("outside", limit=1)
    world.end_lease(job)
    sweep("command")
    assert take_alone("outside")
    assert not finish_late(Done(stale, None, timezone.now()))


def test_run_once_goes_to_a_letter_with_its_error_after_one_start() -> None:
    job = world.job("once")
    world.work_outside()
    job.refresh_from_db()
    assert (job.state, job.starts) == ("dead", 1)
    letter = job.letters.get()
    assert (letter.outcome, letter.error_type) == ("failed", "ValueError")


def test_run_once_whose_worker_is_lost_after_intent_is_unknown_and_not_repeated() -> None:
    job = world.job("once")
    [lease] = take("outside", limit=1)
    assert intend(lease)
    assert not intend(lease), "the mark is set once"
    world.end_lease(job)
    sweep("command")
    job.refresh_from_db()
    assert (job.state, job.letters.get().outcome, job.starts) == ("dead", "unknown", 1)


def test_a_job_that_kills_its_worker_each_time_is_unknown_after_three_crashes_alone() -> None:
    job = world.job("local")
    assert take("local", limit=1)
    for crash in range(1, 5):
        world.end_lease(job)
        sweep("command")
        job.refresh_from_db()
        if job.state == "dead":
            break
        assert take_alone("local"), crash
    assert (job.state, job.crashes, job.crashes_alone, job.starts) == ("dead", 4, 3, 4)
    assert job.letters.get().outcome == "unknown"


def test_a_permanent_error_buries_at_once() -> None:
    def gone(event: Event) -> None:
        raise PermanentError("410 Gone")

    with world.local("gone", gone):
        job = world.job("gone")
        drain("local")
        assert job.letters.get().reason.startswith("permanent")


def test_retry_later_is_honoured_up_to_the_cap() -> None:
    def busy(event: Event) -> None:
        raise RetryLater(timedelta(hours=5))

    with world.local("busy", busy, policy=TWICE):
        job = world.job("busy")
        drain("local")
        job.refresh_from_db()
        assert timedelta(minutes=59) < job.run_at - timezone.now() <= HOUR


def test_a_window_that_closed_unstarted_is_a_letter_and_never_run() -> None:
    job = world.job("outside")
    Job.objects.filter(pk=job.pk).update(not_after=timezone.now() - timedelta(seconds=1))
    assert drain("outside") == 0
    assert sweep("command").expired == 1
    job.refresh_from_db()
    assert (job.state, job.starts, job.letters.get().outcome) == ("dead", 0, "expired")


def test_the_first_start_opens_the_window_of_a_downstream_that_forgets() -> None:
    job = world.job("outside")
    [lease] = take("outside", limit=1)
    job.refresh_from_db()
    assert job.not_after is not None
    window = job.not_after - lease.started_at
    assert abs(window - timedelta(hours=24) * 0.9) < timedelta(seconds=1)


def test_a_kind_nobody_knows_is_held_and_freed_when_it_is_known() -> None:
    job = world.job("local")
    Job.objects.filter(pk=job.pk).update(kind="tomorrow's")
    drain("local")
    job.refresh_from_db()
    assert (job.state, job.held, job.releases) == ("ready", "kind unknown", 1)
    with world.local("tomorrow's", effect):
        assert sweep("command").freed == 1
        drain("local")
    job.refresh_from_db()
    assert job.state == "done"


def test_two_workers_never_lease_the_same_job() -> None:
    for n in range(20):
        world.job("local", f"k-{n}")
    first, second = take("local", limit=12), take("local", limit=12)
    assert len(first) == 12
    assert len(second) == 8
    assert not {lease.id for lease in first} & {lease.id for lease in second}


def test_the_database_refuses_an_illegal_move() -> None:
    job = world.job("local")
    drain("local")
    with pytest.raises(IntegrityError, match="may not move from done"):
        Job.objects.filter(pk=job.pk).update(state="ready")


def test_the_database_refuses_a_token_that_falls() -> None:
    job = world.job("local")
    take("local", limit=1)
    with pytest.raises(IntegrityError, match="may not move"):
        Job.objects.filter(pk=job.pk).update(state="running", token=0)


def test_a_handler_that_opens_a_socket_in_a_local_transaction_fails() -> None:
    def call_out(event: Event) -> None:
        with socket.socket() as opened:
            opened.connect(("127.0.0.1", 9))

    with world.local("calls", call_out, policy=TWICE):
        job = world.job("calls")
        drain("local")
        attempt = job.attempts.get()
        assert attempt.error_type == "OutsideEffectInLocalTransaction"


def test_hostile_error_text_still_becomes_a_verdict() -> None:
    def curse(event: Event) -> None:
        raise ValueError("nul \x00 and surrogate \ud800 and " + "x" * 100_000)

    with world.local("curse", curse, policy=TWICE):
        job = world.job("curse")
        drain("local")
        message = job.attempts.get().message
        assert message.startswith("nul �")
        assert len(message.encode()) <= 2_000


@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_base_exception_is_the_jobs_failure_not_the_workers(
    how: type[BaseException],
) -> None:
    def leave(event: Event) -> None:
        raise how

    with world.local("leave", leave, policy=TWICE):
        bad, good = world.job("leave", "bad"), world.job("local", "good")
        drain("local")
        assert Job.objects.get(pk=good.pk).state == "done"
        assert bad.attempts.get().error_type == how.__name__


@pytest.mark.django_db(transaction=True)
def test_a_handler_that_closes_the_connection_costs_only_its_own_job() -> None:
    def close(event: Event) -> None:
        connection.close()

    with world.local("close", close, policy=TWICE):
        good, bad = world.job("local", "good"), world.job("close", "bad")
        other = world.job("local", "other")
        drain("local")
        assert Job.objects.get(pk=good.pk).state == "done"
        assert Job.objects.get(pk=other.pk).state == "done"
        assert Job.objects.get(pk=bad.pk).attempts.get().outcome == "failed"


def test_the_time_limit_ends_a_handler_in_the_main_thread() -> None:
    def spin(event: Event) -> None:
        while True:
            pass

    with world.local("spin", spin, policy=TWICE, limit=timedelta(milliseconds=100)):
        job = world.job("spin")
        drain("local")
        assert job.attempts.get().error_type == "JobTimeout"


def test_letters_of_one_cause_share_a_fingerprint() -> None:
    def refuse(event: Event) -> None:
        raise ValueError(f"charge ch_{event.key}99999 declined after {len(event.key)} s")

    with world.kind("refuse", refuse, policy=RunOnce()):
        for key in ("a", "bbbb"):
            world.job("refuse", key)
        world.work_outside()
        assert DeadLetter.objects.values("fingerprint").distinct().count() == 1
