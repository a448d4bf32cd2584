"""What people do with a redrive: start, approve, pause, resume, cancel; each once, by its state."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, F, FloatField, Q, Sum
from django.db.models.functions import Abs, Cast, Power
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.errors import RedriveRefused
from reliability.models import Redrive, RedriveMember
from reliability.work.dead_letters import Act
from reliability.work.redrive.pace import Pace
from reliability.work.redrive.record import record
from reliability.work.redrive.standing import standing

State, Outcome, Verdict = Redrive.State, RedriveMember.Outcome, RedriveMember.Verdict


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a person decided on the preview. ``mail_to`` is told when it ends."""

    pace: Pace
    include_cannot_tell: bool = False
    ticket: str = ""
    mail_to: str = ""
    break_glass: str = ""
    """Why it cannot wait for a second person, where one is needed."""


@dataclass(frozen=True)
class _Resolved:
    public_id: Any


def second_person(redrive: Redrive, *, include_cannot_tell: bool = False) -> str:
    """Say why a second person has to approve; empty where none has to.

    Above ``conf().redrive_alone_letters`` letters, or ``conf().redrive_alone_major`` units of any
    one currency, refunds counted as amounts.
    """
    wanted = Q(outcome=Outcome.PENDING)
    if include_cannot_tell:
        wanted |= Q(verdict=Verdict.CANNOT_TELL)
    major = Cast(Abs("letter__amount_minor"), FloatField()) / Power(
        10.0, F("letter__exponent")
    )
    sums = redrive.members.filter(wanted).order_by().values("letter__currency")
    worth = list(sums.annotate(letters=Count("pk"), major=Sum(major)))
    letters, most = sum(row["letters"] for row in worth), conf().redrive_alone_major
    if letters > conf().redrive_alone_letters:
        return f"{letters} letters, more than {conf().redrive_alone_letters}"
    over = [row["letter__currency"] for row in worth if (row["major"] or 0) > most]
    return f"more than {most} {over[0]}" if over else ""


def start(redrive: Redrive, act: Act, plan: Plan) -> Redrive:
    """Start a frozen redrive, or have it wait for a second person where one is needed.

    ``act.reason`` is required. Raises RedriveRefused: no reason, a pace out of bounds, nothing to
    requeue, or somebody was first.
    """
    needs = second_person(redrive, include_cannot_tell=plan.include_cannot_tell)
    _check(redrive, act, plan)
    waits = bool(needs and not plan.break_glass.strip())
    glass = plan.break_glass.strip() if needs else ""
    now = timezone.now()
    with transaction.atomic(using=sql.database().alias):
        _move(
            redrive, State.FROZEN, state=State.WAITING if waits else State.RUNNING,
            reason=act.reason, ticket=plan.ticket, mail_to=plan.mail_to, actor=act.actor,
            user_id=act.user_id, include_cannot_tell=plan.include_cannot_tell,
            pace=plan.pace.how, rate=plan.pace.rate, stop_percent=plan.pace.stop_percent,
            stop_after=plan.pace.stop_after, started_at=now, paced_at=now, break_glass=glass,
            why=needs if waits else "",
        )  # fmt: skip
        if plan.include_cannot_tell:
            redrive.members.filter(verdict=Verdict.CANNOT_TELL).update(outcome=Outcome.PENDING)
        name = "ask for redrive" if waits else "start redrive"
        record(redrive, act, "break glass: start redrive" if glass else name, glass=glass)
    return redrive


def _check(redrive: Redrive, act: Act, plan: Plan) -> None:
    if not act.reason.strip():
        raise RedriveRefused("Say why: the reason is kept with every letter.")
    if problem := plan.pace.problem(conf().redrive_rate_max):
        raise RedriveRefused(problem)
    wanted = Q(outcome=Outcome.PENDING)
    if plan.include_cannot_tell:
        wanted |= Q(verdict=Verdict.CANNOT_TELL)
    if not redrive.members.filter(wanted).exists():
        raise RedriveRefused("None of these letters would run.")


def approve(redrive: Redrive, act: Act) -> Redrive:
    """Let somebody else's waiting redrive run. Raises RedriveRefused for one's own."""
    _refuse_own(redrive, act, "approve")
    with transaction.atomic(using=sql.database().alias):
        _move(
            redrive, State.WAITING, state=State.RUNNING, approved_by=act.actor, why="",
            paced_at=timezone.now(),
        )  # fmt: skip
        record(redrive, act, "approve redrive")
    return redrive


def review(redrive: Redrive, act: Act) -> Redrive:
    """Put on record that a second person looked at a redrive started by breaking glass."""
    _refuse_own(redrive, act, "review")
    with transaction.atomic(using=sql.database().alias):
        unreviewed = Redrive.objects.filter(pk=redrive.pk, reviewed_by="")
        if not unreviewed.exclude(break_glass="").update(reviewed_by=act.actor):
            raise RedriveRefused("There is nothing to review, or somebody was first.")
        redrive.refresh_from_db()
        record(redrive, act, "review broken glass")
    return redrive


def pause(redrive: Redrive, act: Act) -> Redrive:
    """Requeue no further letter until somebody resumes; what is on its way goes on."""
    with transaction.atomic(using=sql.database().alias):
        _move(redrive, State.RUNNING, state=State.PAUSED, why=act.reason)
        record(redrive, act, "pause redrive")
    return redrive


def resume(redrive: Redrive, act: Act) -> Redrive:
    """Let a paused or stopped redrive go on; the automatic stop counts from here."""
    with transaction.atomic(using=sql.database().alias):
        redrive = Redrive.objects.select_for_update().get(pk=redrive.pk)
        seen = standing(redrive)
        how = Redrive.Pace.RAMP if redrive.pace == Redrive.Pace.ONE else redrive.pace
        _move(
            redrive, State.PAUSED, State.STOPPED, state=State.RUNNING, why="", pace=how, told_state="",
            paced_at=timezone.now(), judged_succeeded=redrive.judged_succeeded + seen.succeeded,
            judged_failed=redrive.judged_failed + seen.failing,
        )  # fmt: skip
        record(redrive, act, "resume redrive")
    return redrive


def change_rate(redrive: Redrive, act: Act, *, rate: float) -> Redrive:
    """Change the letters per second of a redrive that is not over."""
    pace = Pace(rate=rate, stop_percent=redrive.stop_percent, stop_after=redrive.stop_after)
    if problem := pace.problem(conf().redrive_rate_max):
        raise RedriveRefused(problem)
    with transaction.atomic(using=sql.database().alias):
        before = redrive.rate
        _move(redrive, *Redrive.LIVE, rate=rate, paced_at=timezone.now())
        record(redrive, act, "change pace of redrive", before=before, rate=rate)
    return redrive


def cancel(redrive: Redrive, act: Act) -> Redrive:
    """Leave the remaining letters as they are, for good; those on their way finish.

    ``act.reason`` is required once it has started. Raises RedriveRefused.
    """
    if not act.reason.strip():
        raise RedriveRefused("Say why the rest is cancelled.")
    now = timezone.now()
    with transaction.atomic(using=sql.database().alias):
        _move(redrive, *Redrive.LIVE, state=State.CANCELLED, why=act.reason)
        record(redrive, act, "cancel redrive")
        redrive.members.filter(outcome=Outcome.PENDING).update(
            outcome=Outcome.SKIPPED, why="cancelled", settled_at=now
        )
    return redrive


def close_applied(redrive: Redrive, act: Act) -> int:
    """Resolve the letters found to be already applied, with their evidence; return how many.

    ``act.reason`` is required. A letter that moved since stays as it is.
    """
    if not act.reason.strip():
        raise RedriveRefused("Say why they are closed: it is kept with every letter.")
    with transaction.atomic(using=sql.database().alias):
        resolved = sql.rows_planned_anew(
            "resolve_members", _Resolved, redrive_id=redrive.pk, now=timezone.now(),
            actor=act.actor, reason=act.reason,
        )  # fmt: skip
        if resolved:
            record(redrive, act, "resolve applied letters", resolved=len(resolved))
    return len(resolved)


def _refuse_own(redrive: Redrive, act: Act, verb: str) -> None:
    if (act.user_id, act.actor) == (redrive.user_id, redrive.actor) or (
        act.user_id is not None and act.user_id == redrive.user_id
    ):
        raise RedriveRefused(f"Somebody else has to {verb} it: it is your own.")


def _move(redrive: Redrive, *expected: str, **changes: Any) -> None:
    """Move by compare-and-set on the state; raise RedriveRefused for who was not first."""
    moved = Redrive.objects.filter(pk=redrive.pk, state__in=expected).update(**changes)
    redrive.refresh_from_db()
    if not moved:
        raise RedriveRefused(
            f"Nothing was changed: {redrive} is {redrive.get_state_display().lower()}."
        )
