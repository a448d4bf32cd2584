"""A job's life, one move at a time, on real PostgreSQL."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection
from django.utils import timezone

from reliability import handlers
from reliability.errors import JobInterrupted, JobTimeout, PermanentError, RetryLater
from reliability.handlers import Event, ProviderHeader
from reliability.models import Attempt, DeadLetter, Job
from reliability.policy import Backoff, Bury, Retry, RunOnce
from reliability.sweep import sweep
from reliability.work import settle
from reliability.work.drain import drain
from reliability.work.lease import take, take_alone, worker
from reliability.work.settle import (
    Deferred,
    Done,
    Failed,
    clean,
    defer,
    error_of,
    fingerprint,
    finish,
    finish_late,
    intend,
    plain,
    release,
)
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


def test_every_end_of_a_start_says_who_worked_and_since_when() -> None:
    began = timezone.now() - HOUR
    once = handlers.find("once")
    assert once
    ends = {
        "done": lambda lease: finish([Done(lease, {"id": "ch_1"}, began)]),
        "failed": lambda lease: settle.fail(Failed(lease, once, ValueError("no"), began)),
        "released": release,
    }
    for outcome, end in ends.items():
        job = world.job("once", outcome)
        [lease] = take("outside", limit=1)
        assert end(lease)
        attempt = job.attempts.get()
        since = lease.started_at if outcome == "released" else began
        assert (attempt.outcome, attempt.worker) == (outcome, worker())
        assert attempt.started_at == since
        job.refresh_from_db()
        assert job.result == ({"id": "ch_1"} if outcome == "done" else None)
        Job.objects.filter(pk=job.pk).update(run_at=timezone.now() + HOUR)


def test_a_late_result_says_who_brought_it_and_since_when() -> None:
    began = timezone.now() - HOUR
    job = world.job("outside")
    [lease] = take("outside", limit=1)
    world.end_lease(job)
    sweep("command")
    assert finish_late(Done(lease, None, began))
    attempt = job.attempts.get(outcome="late")
    assert (attempt.worker, attempt.started_at) == (worker(), began)


def test_a_failure_is_told_with_its_message_and_where_it_came_from() -> None:
    job = world.job("once")
    world.work_outside()
    attempt, letter = job.attempts.get(), job.letters.get()
    assert attempt.error_type == letter.error_type == "ValueError"
    assert attempt.message == letter.message == "the downstream said no"
    assert attempt.traceback.startswith("Traceback (most recent call last):\n  File")
    assert attempt.traceback.endswith("\nValueError: the downstream said no\n")
    assert letter.fingerprint == "ValueError: the downstream said no in fail"


def test_a_start_cut_short_by_a_shutdown_is_due_again_at_once_and_is_no_failure() -> None:
    job = world.job("once")
    once = handlers.find("once")
    assert once
    [lease] = take("outside", limit=1)
    cut = Failed(lease, once, JobInterrupted("the worker is shutting down"), timezone.now())
    assert settle.fail(cut) == Retry(timedelta(0))
    job.refresh_from_db()
    assert (job.state, job.releases) == ("ready", 1)
    assert job.run_at <= timezone.now()
    attempt = job.attempts.get()
    assert attempt.outcome == "released"
    assert (attempt.error_type, attempt.message, attempt.traceback) == ("", "", "")


@pytest.mark.parametrize("cut", [JobInterrupted("stopping"), JobTimeout("too long")])
def test_a_start_cut_short_after_its_effect_began_is_unknown(cut: Exception) -> None:
    job = world.job("once")
    once = handlers.find("once")
    assert once
    [lease] = take("outside", limit=1)
    assert settle.fail(Failed(lease, once, cut, timezone.now(), in_doubt=True)) == Bury(
        "unknown", "it failed after it began: the effect may have happened"
    )
    job.refresh_from_db()
    assert (job.state, job.releases, job.letters.get().outcome) == ("dead", 0, "unknown")


def test_a_failure_of_a_job_taken_over_changes_nothing() -> None:
    once, broken = handlers.find("once"), handlers.find("broken")
    assert once
    assert broken
    world.job("once")
    [lease] = take("outside", limit=1)
    stale = replace(lease, token=lease.token - 1)
    for kind in once, broken:
        assert settle.fail(Failed(stale, kind, ValueError("no"), timezone.now())) is None
    assert not release(stale)
    assert not intend(stale)
    assert not defer(stale, Deferred(HOUR), "elsewhere")


def test_a_deferred_job_runs_on_under_its_mark_for_as_long_as_was_said() -> None:
    job = world.job("outside")
    [lease] = take("outside", limit=1)
    assert defer(lease, Deferred(5 * HOUR), "elsewhere")
    job.refresh_from_db()
    assert (job.state, job.worker) == ("running", "elsewhere")
    assert job.lease_expires_at is not None
    left = job.lease_expires_at - timezone.now()
    assert 5 * HOUR - timedelta(minutes=1) < left <= 5 * HOUR


def test_a_result_is_kept_up_to_its_limit_in_bytes() -> None:
    assert plain("x" * (65_536 - 2)) == "x" * (65_536 - 2)
    assert plain("x" * (65_536 - 1)) == {
        "not kept": "too large, or text that cannot be stored"
    }


def test_a_long_error_is_cut_its_traceback_from_the_front() -> None:
    named = type("E" * 300, (Exception,), {})
    kept = error_of(named("x" * 20_000 + " the end"))
    assert kept["error_type"] == "E" * 200
    assert kept["message"] == "x" * 2_000
    assert kept["traceback"] == "x" * 15_991 + " the end\n"


def test_an_error_that_cannot_be_read_is_said_to_be_so() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_of(Mute())["message"] == "(its text could not be read)"


def test_text_is_cut_between_characters_and_not_within_one() -> None:
    assert clean("a\x00b", 10) == "a\N{REPLACEMENT CHARACTER}b"
    assert clean("a\ud800b", 10) == "a?b"
    assert clean("aé", 2) == "a"


def test_a_fingerprint_names_the_hosts_own_frame_and_is_cut() -> None:
    with pytest.raises(LookupError) as within:
        apps.get_app_config("nobodys")
    own = "test_a_fingerprint_names_the_hosts_own_frame_and_is_cut"
    assert fingerprint(within.value) == f"LookupError: No installed app with label …. in {own}"
    assert fingerprint(ValueError("x" * 300)) == "ValueError: " + "x" * 200
    assert fingerprint(ValueError("paid 5 of 7")) == "ValueError: paid … of …"
    long = type("E" * 500, (Exception,), {})
    assert fingerprint(long()) == "E" * 400
