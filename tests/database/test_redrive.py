"""A redrive: a frozen set, a dry run that tells what it knows, a pace, and each letter once."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone

from reliability.conf import conf
from reliability.errors import RedriveRefused
from reliability.handlers import (
    Applied,
    CannotTell,
    Event,
    Evidence,
    NotApplied,
    ProviderHeader,
    UniqueConstraint,
)
from reliability.models import (
    AuditEntry,
    DeadLetter,
    Job,
    ProcessedKey,
    Redrive,
    RedriveMember,
    Source,
)
from reliability.policy import RunOnce
from reliability.work.dead_letters import Act, Seen, discard, requeue
from reliability.work.lease import take
from reliability.work.redrive import (
    Pace,
    Plan,
    advance,
    approve,
    cancel,
    close_applied,
    counts,
    freeze,
    pause,
    resume,
    review,
    start,
)
from reliability.work.redrive.mail import tell
from tests.database import many, world

pytestmark = pytest.mark.django_db

BROKEN: set[str] = set()
"""Keys whose handler fails."""


def book(event: Event) -> None:
    if event.key in BROKEN or "*" in BROKEN:
        raise ValueError("ledger closed")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    BROKEN.clear()
    with world.kind("book", book, policy=RunOnce(), verify=lambda _: NotApplied()):
        yield


@pytest.fixture
def live() -> Source:
    return world.source()


def by(name: str = "ola", reason: str = "fixed in 5a02b7d") -> Act:
    return Act(world.tenant(), name, reason=reason)


def frozen(asked: str = "status=open", act: Act | None = None) -> Redrive:
    letters = DeadLetter.objects.filter(tenant=world.tenant())
    return freeze(letters, act or by(), asked=asked, now=timezone.now())


def plan(how: Any = "steady", rate: float = 1000.0, **more: Any) -> Plan:
    stop = {name: more.pop(name) for name in ("stop_percent", "stop_after") if name in more}
    pace = Pace(how=how, rate=rate, **{"stop_percent": 20, "stop_after": 10} | stop)
    return Plan(pace=pace, **more)


def started(how: Any = "steady", **more: Any) -> Redrive:
    return start(frozen(), by(), plan(how, **more))


def work() -> None:
    """Let what was requeued be due, and work it in this thread."""
    Job.objects.filter(state="ready").update(run_at=timezone.now() - timedelta(seconds=1))
    world.work_outside()


def tick(after: float = 10.0) -> None:
    """Advance as beat would, some seconds later."""
    global CLOCK  # noqa: PLW0603 - the test's own clock
    CLOCK = max(CLOCK, timezone.now()) + timedelta(seconds=after)
    advance(CLOCK)


CLOCK = datetime.min.replace(tzinfo=timezone.get_current_timezone())


@pytest.fixture(autouse=True)
def clock() -> None:
    global CLOCK  # noqa: PLW0603 - the test's own clock
    CLOCK = timezone.now()


def verdicts(redrive: Redrive) -> dict[str, int]:
    found: dict[str, int] = {}
    for verdict in redrive.members.values_list("verdict", flat=True):
        found[verdict] = found.get(verdict, 0) + 1
    return found


def read(redrive: Redrive) -> Redrive:
    return Redrive.objects.get(pk=redrive.pk)


# The frozen set.


def test_an_empty_filter_is_refused_and_so_is_a_set_without_open_letters(live: Source) -> None:
    many.dead_letters(live, 2)
    for asked in ("", "  "):
        with pytest.raises(RedriveRefused, match="all of them"):
            frozen(asked)
    DeadLetter.objects.update(status="discarded")
    with pytest.raises(RedriveRefused, match="No open letter"):
        frozen()
    assert not Redrive.objects.exists()


def test_letters_that_come_after_the_cut_off_are_not_part_of_the_set(live: Source) -> None:
    many.dead_letters(live, 3)
    redrive = frozen()
    many.dead_letters(live, 2, kind="later")
    start(redrive, by(), plan())
    tick()
    assert counts(redrive) == {"running": 3}
    assert DeadLetter.objects.open().count() == 2


def test_a_letter_buried_after_the_cut_off_is_not_taken_whatever_is_there_by_then(
    live: Source,
) -> None:
    many.dead_letters(live, 1)
    many.dead_letters(live, 2, kind="later", at=timezone.now() + timedelta(minutes=1))
    assert frozen().members.count() == 1


def test_letters_of_another_tenant_never_join(live: Source) -> None:
    many.dead_letters(live, 2)
    many.dead_letters(world.source("other", of="globex"), 3, kind="foreign")
    redrive = freeze(DeadLetter.objects.all(), by(), asked="status=open", now=timezone.now())
    assert redrive.members.count() == 2


def test_a_set_larger_than_one_redrive_takes_the_oldest_and_says_so(
    live: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.dead_letters(live, 5)
    monkeypatch.setitem(conf().__dict__, "redrive_letters_max", 3)
    redrive = frozen()
    assert redrive.more
    oldest = list(DeadLetter.objects.order_by("pk").values_list("pk", flat=True)[:3])
    assert sorted(redrive.members.values_list("letter_id", flat=True)) == oldest


# The dry run.


@pytest.mark.parametrize(
    ("evidence", "verdict", "outcome"),
    [
        (NotApplied(), "will run", "pending"),
        (Applied("ch_1"), "already applied", "left alone"),
        (CannotTell("no entry"), "cannot tell", "left alone"),
        (TimeoutError("provider"), "cannot tell", "left alone"),
    ],
)
def test_the_dry_run_says_what_verify_says_and_never_guesses(
    live: Source, evidence: Evidence | Exception, verdict: str, outcome: str
) -> None:
    def verify(_: Event) -> Evidence:
        if isinstance(evidence, Exception):
            raise evidence
        return evidence

    many.dead_letters(live, 1, kind="charge", queue="outside")
    with world.kind("charge", book, sink=ProviderHeader(), verify=verify):
        member = frozen().members.get()
    assert (member.verdict, member.outcome) == (verdict, outcome)


def test_a_kind_without_verify_cannot_tell_and_one_without_handler_cannot_run(
    live: Source,
) -> None:
    many.dead_letters(live, 1, kind="mail", queue="outside")
    many.dead_letters(live, 1, kind="stranger")
    many.dead_letters(live, 1)
    DeadLetter.objects.filter(kind="book").update(outcome="unroutable")
    with world.kind("mail", book, sink=ProviderHeader()):
        found = verdicts(frozen())
    assert found == {"cannot tell": 1, "cannot run": 2}


def test_a_letter_whose_body_was_erased_cannot_run_before_or_after_the_start(
    live: Source,
) -> None:
    many.dead_letters(live, 2)
    keys = ProcessedKey.objects.order_by("pk")
    keys.filter(pk=keys[0].pk).update(erased_at=timezone.now())
    redrive = started()
    assert verdicts(redrive) == {"cannot run": 1, "will run": 1}
    keys.update(erased_at=timezone.now())
    tick()
    assert counts(redrive) == {"left alone": 1, "skipped": 1}


def test_a_kind_whose_effects_commit_with_its_done_mark_will_run(live: Source) -> None:
    many.dead_letters(live, 1, kind="row", queue="local")
    with world.local("row", book):
        assert verdicts(frozen()) == {"will run": 1}


def test_a_row_under_the_constraint_is_the_evidence_that_it_was_applied(live: Source) -> None:
    many.dead_letters(live, 2, kind="user")
    User.objects.create_user("d-user-1")
    with world.kind("user", book, sink=UniqueConstraint("auth.User", "username")):
        redrive = frozen()
    by_key = dict(redrive.members.values_list("letter__job__key__key", "verdict"))
    assert by_key == {"user-1": "already applied", "user-2": "will run"}


def test_a_closed_window_is_not_run_unless_verify_shows_it_was_not_applied(
    live: Source,
) -> None:
    many.dead_letters(live, 2, kind="charge", queue="outside")
    Job.objects.update(not_after=timezone.now() - timedelta(hours=1))
    said: dict[str, Evidence] = {"charge-1": NotApplied(), "charge-2": CannotTell()}
    with world.kind("charge", book, sink=ProviderHeader(), verify=lambda e: said[e.key]):
        redrive = frozen()
        assert verdicts(redrive) == {"will run": 1, "window closed": 1}
        start(redrive, by(), plan(include_cannot_tell=True))
        tick(1)
    assert counts(redrive) == {"running": 1, "left alone": 1}


def test_verify_is_asked_about_the_first_letters_only(
    live: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.dead_letters(live, 5, kind="charge", queue="outside")
    monkeypatch.setitem(conf().__dict__, "redrive_verify_max", 2)
    with world.kind("charge", book, sink=ProviderHeader(), verify=lambda _: NotApplied()):
        assert verdicts(frozen()) == {"will run": 2, "cannot tell": 3}


def test_a_letter_that_waits_in_another_redrive_is_shown_as_running_there(
    live: Source,
) -> None:
    many.dead_letters(live, 2)
    first = started("one")
    second = frozen()
    assert verdicts(second) == {"running": 2}
    assert set(second.members.values_list("why", flat=True)) == {f"in {first}"}


def test_a_dry_run_changes_no_letter(live: Source) -> None:
    many.dead_letters(live, 3)
    before = list(Job.objects.order_by("pk").values())
    frozen()
    assert list(Job.objects.order_by("pk").values()) == before
    assert not AuditEntry.objects.exists()


# Starting.


def test_a_start_needs_a_reason_a_pace_within_bounds_and_something_to_run(
    live: Source,
) -> None:
    many.dead_letters(live, 1)
    redrive = frozen()
    with pytest.raises(RedriveRefused, match="Say why"):
        start(redrive, by(reason=" "), plan())
    with pytest.raises(RedriveRefused, match="per second"):
        start(redrive, by(), plan(rate=0.0))
    redrive.members.update(verdict="cannot tell", outcome="left alone")
    with pytest.raises(RedriveRefused, match="None of these"):
        start(redrive, by(), plan())
    assert read(redrive).state == "frozen"


def test_a_second_click_on_start_changes_nothing(live: Source) -> None:
    many.dead_letters(live, 2)
    redrive = frozen()
    start(redrive, by(), plan())
    with pytest.raises(RedriveRefused, match="is running"):
        start(redrive, by("second"), plan())
    assert list(AuditEntry.objects.values_list("act", "actor")) == [("start redrive", "ola")]


def test_the_audit_entry_counts_and_digests_the_letters(live: Source) -> None:
    many.dead_letters(live, 2)
    ids = DeadLetter.objects.values_list("public_id", flat=True)
    text = "\n".join(sorted(str(public_id) for public_id in ids))
    started()
    entry = AuditEntry.objects.get()
    (expected,) = world.query("SELECT encode(sha256(%s), 'hex')", text.encode())[0]
    assert (entry.facts["count"], entry.facts["digest"]) == (2, expected)


def test_what_cannot_be_told_takes_part_only_when_asked_for(live: Source) -> None:
    many.dead_letters(live, 2, kind="mail", queue="outside")
    many.dead_letters(live, 1)
    with world.kind("mail", book, sink=ProviderHeader()):
        first, second = frozen(), frozen()
        start(first, by(), plan(include_cannot_tell=True))
        start(second, by(), plan())
    assert counts(first) == {"pending": 3}
    assert counts(second) == {"pending": 1, "left alone": 2}


# Pace.


def test_it_requeues_one_then_ten_then_at_its_rate_in_its_own_lane(live: Source) -> None:
    many.dead_letters(live, 40)
    redrive = started("ramp", rate=2.0)
    tick()
    assert counts(redrive) == {"running": 1, "pending": 39}
    tick()
    assert counts(redrive) == {"running": 1, "pending": 39}, "the first has not settled"
    assert set(Job.objects.filter(state="ready").values_list("lane", flat=True)) == {10}
    work()
    tick()
    assert counts(redrive) == {"succeeded": 1, "running": 10, "pending": 29}
    work()
    tick(2)
    assert counts(redrive) == {"succeeded": 11, "running": 4, "pending": 25}


def test_live_traffic_goes_before_a_redrive(live: Source) -> None:
    many.dead_letters(live, 3)
    started()
    tick()
    fresh = world.job("book", "fresh")
    Job.objects.filter(state="ready").update(run_at=timezone.now() - timedelta(seconds=1))
    assert [leased.id for leased in take("outside", limit=1)] == [fresh.pk]


def test_the_letters_of_a_step_become_due_one_after_the_other_at_its_rate(
    live: Source,
) -> None:
    many.dead_letters(live, 30)
    started("steady", rate=2.0)
    tick(2)
    due = sorted(Job.objects.filter(state="ready").values_list("run_at", flat=True))
    assert len(due) == 4
    assert [later - first for first, later in pairwise(due)] == [timedelta(seconds=0.5)] * 3


def test_only_one_waits_for_its_starter_and_goes_on_when_resumed(live: Source) -> None:
    many.dead_letters(live, 5)
    redrive = started("one")
    tick()
    work()
    tick()
    assert read(redrive).state == "paused"
    resume(redrive, by())
    tick()
    assert counts(redrive) == {"succeeded": 1, "running": 4}


def test_it_stops_itself_when_more_than_a_fifth_of_its_own_results_fail(live: Source) -> None:
    many.dead_letters(live, 40)
    BROKEN.update({"book-2", "book-5", "book-7"})
    redrive = started("ramp", rate=2.0)
    for _ in range(3):
        tick()
        work()
    tick()
    now_at = read(redrive)
    assert now_at.state == "stopped"
    assert now_at.why == "3 of 11 results failed again, more than 20 %"
    assert counts(redrive)["pending"] == 29
    assert AuditEntry.objects.latest("number").act == "redrive stopped itself"
    tick()
    assert counts(redrive)["pending"] == 29, "a stopped redrive requeues nothing"


def test_after_a_person_resumes_only_new_results_count(live: Source) -> None:
    many.dead_letters(live, 40)
    BROKEN.update({"book-2", "book-5", "book-7"})
    redrive = started("ramp", rate=1000.0)
    for _ in range(4):
        tick()
        work()
    assert read(redrive).state == "stopped"
    BROKEN.clear()
    resume(redrive, by())
    for _ in range(3):
        tick()
        work()
    tick()
    assert read(redrive).state == "done"
    assert counts(redrive) == {"succeeded": 37, "failed again": 3}


# Outcomes.


def test_every_letter_has_its_outcome_at_the_end(live: Source) -> None:
    many.dead_letters(live, 4)
    BROKEN.add("book-1")
    redrive = frozen()
    beaten = DeadLetter.objects.select_related("job").get(job__key__key="book-2")
    taken_back = DeadLetter.objects.select_related("job").get(job__key__key="book-3")
    start(redrive, by(), plan(stop_percent=100))
    discard([Seen(beaten.pk, beaten.job.version)], by("second"))
    tick()
    Job.objects.filter(pk=taken_back.job_id).update(state="dead", round=1)
    work()
    tick()
    told = dict(redrive.members.values_list("letter__job__key__key", "outcome"))
    assert told == {
        "book-1": "failed again",
        "book-2": "skipped",
        "book-3": "skipped",
        "book-4": "succeeded",
    }
    why = dict(redrive.members.values_list("letter__job__key__key", "why"))
    assert why["book-2"] == "moved on since the set was frozen"
    assert why["book-3"] == "taken back before it started"
    assert read(redrive).state == "done"


def test_the_letters_carry_the_reason_and_who_started_it(live: Source) -> None:
    many.dead_letters(live, 1)
    redrive = started()
    tick()
    letter = DeadLetter.objects.get()
    assert (letter.status, letter.closed_by) == ("requeued", "ola")
    assert letter.closed_reason == f"{redrive}: fixed in 5a02b7d"
    job = Job.objects.get()
    assert (job.round, job.round_starts, job.version) == (2, 1, 2)


def test_a_letter_requeued_by_hand_first_is_not_requeued_twice(live: Source) -> None:
    many.dead_letters(live, 1)
    redrive = started()
    letter = DeadLetter.objects.select_related("job").get()
    assert requeue([Seen(letter.pk, letter.job.version)], by("second")).letter_ids
    tick()
    assert counts(redrive) == {"skipped": 1}
    assert Job.objects.get().round == 2


def came_back(letter: DeadLetter) -> None:
    """Let somebody requeue the letter, and its job die once more."""
    BROKEN.add("*")
    assert requeue([Seen(letter.pk, letter.job.version)], by("second")).letter_ids
    work()
    BROKEN.clear()


def test_a_letter_that_was_requeued_and_died_again_meanwhile_is_skipped(live: Source) -> None:
    many.dead_letters(live, 1)
    redrive = started()
    came_back(DeadLetter.objects.select_related("job").get())
    tick()
    assert counts(redrive) == {"skipped": 1}
    assert Job.objects.get().state == "dead"


def test_a_letter_that_died_again_meanwhile_is_not_closed_as_applied(live: Source) -> None:
    many.dead_letters(live, 1)
    redrive = frozen()
    redrive.members.update(verdict="already applied", outcome="left alone")
    came_back(DeadLetter.objects.select_related("job").get())
    assert close_applied(redrive, by()) == 0
    assert Job.objects.get().state == "dead"


def test_verify_is_asked_again_when_a_letters_turn_comes(live: Source) -> None:
    said: list[Evidence] = [NotApplied()]
    many.dead_letters(live, 1, kind="charge", queue="outside")
    with world.kind("charge", book, sink=ProviderHeader(), verify=lambda _: said[-1]):
        redrive = start(frozen(), by(), plan())
        said.append(Applied("ch_1"))
        tick(conf().redrive_verified_for.total_seconds() + 1)
    member = redrive.members.get()
    assert (member.outcome, member.why) == ("skipped", "asked: applied as ch_1")
    assert DeadLetter.objects.open().count() == 1


def test_what_is_already_applied_is_closed_by_its_own_act_with_the_evidence(
    live: Source,
) -> None:
    many.dead_letters(live, 2, kind="charge", queue="outside")
    said: dict[str, Evidence] = {"charge-1": Applied("ch_1"), "charge-2": NotApplied()}
    with world.kind("charge", book, sink=ProviderHeader(), verify=lambda e: said[e.key]):
        redrive = start(frozen(), by(), plan())
        tick(1)
    applied = DeadLetter.objects.get(job__key__key="charge-1")
    assert applied.status == "open", "the bulk itself leaves it alone"
    assert close_applied(redrive, by("mia", "seen at the provider")) == 1
    assert close_applied(redrive, by("mia", "seen at the provider")) == 0
    applied.refresh_from_db()
    assert (applied.status, applied.closed_by) == ("resolved", "mia")
    assert applied.closed_reason == "seen at the provider (asked: applied as ch_1)"
    assert Job.objects.get(pk=applied.job_id).state == "resolved"


# Pause, cancel, a second person, mail.


def test_a_paused_redrive_requeues_nothing_and_settles_what_is_on_its_way(
    live: Source,
) -> None:
    many.dead_letters(live, 20)
    redrive = started(rate=5.0)
    tick(2)
    on_its_way = counts(redrive)["running"]
    pause(redrive, by())
    work()
    tick()
    assert counts(redrive) == {"succeeded": on_its_way, "pending": 20 - on_its_way}
    assert read(redrive).state == "paused"


def test_a_cancel_leaves_the_rest_as_dead_letters_and_lets_the_running_finish(
    live: Source,
) -> None:
    many.dead_letters(live, 20)
    redrive = started(rate=5.0)
    tick(2)
    on_its_way = counts(redrive)["running"]
    with pytest.raises(RedriveRefused, match="Say why"):
        cancel(redrive, by(reason=""))
    cancel(redrive, by())
    tick()
    assert read(redrive).ended_at is None, "letters are still on their way"
    work()
    tick()
    assert counts(redrive) == {"succeeded": on_its_way, "skipped": 20 - on_its_way}
    assert DeadLetter.objects.open().count() == 20 - on_its_way
    assert (read(redrive).state, read(redrive).ended_at is None) == ("cancelled", False)
    with pytest.raises(RedriveRefused, match="is cancelled"):
        resume(redrive, by())


@pytest.mark.parametrize(
    ("letters", "amount", "waits"),
    [(3, None, True), (2, 2_500_100, True), (2, 2_500_000, False)],
)
def test_above_a_limit_of_letters_or_money_a_second_person_approves(
    live: Source,
    monkeypatch: pytest.MonkeyPatch,
    letters: int,
    amount: int | None,
    *,
    waits: bool,
) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_alone_letters", 2)
    many.dead_letters(live, letters, amount=amount)
    redrive = started()
    tick()
    assert redrive.state == ("waiting" if waits else "running")
    if not waits:
        return
    assert "running" not in counts(redrive)
    with pytest.raises(RedriveRefused, match="your own"):
        approve(redrive, by())
    approve(redrive, by("mia"))
    tick()
    assert counts(redrive) == {"running": letters}
    assert read(redrive).approved_by == "mia"


def test_breaking_the_glass_starts_at_once_and_is_reviewed_by_somebody_else(
    live: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_alone_letters", 1)
    many.dead_letters(live, 2)
    redrive = started(break_glass="payouts leave at 04:00")
    assert (redrive.state, redrive.break_glass) == ("running", "payouts leave at 04:00")
    with pytest.raises(RedriveRefused, match="your own"):
        review(redrive, by())
    review(redrive, by("mia"))
    with pytest.raises(RedriveRefused, match="nothing to review"):
        review(redrive, by("kim"))
    acts = list(AuditEntry.objects.order_by("number").values_list("act", flat=True))
    assert acts == ["break glass: start redrive", "review broken glass"]


def test_its_starter_gets_one_mail_when_it_ends_without_a_key_in_it(live: Source) -> None:
    many.dead_letters(live, 2)
    redrive = started(mail_to="ola@acme.example")
    tick()
    assert tell(CLOCK) == 0, "it has not ended"
    work()
    tick()
    assert (tell(CLOCK), tell(CLOCK)) == (1, 0)
    (sent,) = mail.outbox
    assert sent.to == ["ola@acme.example"]
    assert sent.subject == f"[Reliability] {redrive} is done: 2 succeeded, 0 failed again"
    assert "book-1" not in sent.body


def test_a_mail_whose_sender_died_goes_out_later_under_the_same_id(live: Source) -> None:
    many.dead_letters(live, 1)
    redrive = started(mail_to="ola@acme.example")
    tick()
    work()
    tick()
    died_at = CLOCK
    Redrive.objects.filter(pk=redrive.pk).update(
        mail_tries=1, mail_due_at=died_at + conf().mail_lease
    )
    assert tell(died_at) == 0
    assert tell(died_at + conf().mail_lease) == 1


def test_a_draft_nobody_started_is_dropped_after_a_day(live: Source) -> None:
    many.dead_letters(live, 2)
    frozen()
    advance(timezone.now() + conf().redrive_draft_kept + timedelta(minutes=1))
    assert not Redrive.objects.exists()
    assert not RedriveMember.objects.exists()
