"""The tick: results come in, the rate allows the next letters, or too much fails and it stops."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from reliability import dispatch, sql
from reliability.conf import conf
from reliability.handlers import kinds
from reliability.killing import Point, reach
from reliability.models import Job, Redrive, RedriveMember
from reliability.work.dead_letters import Act
from reliability.work.evidence import verifies
from reliability.work.redrive.freeze import ask
from reliability.work.redrive.pace import (
    STEPS,
    Ask,
    End,
    Next,
    Pace,
    Release,
    Stop,
    Wait,
    allowance,
    next_move,
    room,
)
from reliability.work.redrive.record import record
from reliability.work.redrive.standing import standing

logger = logging.getLogger(__name__)

State, Outcome = Redrive.State, RedriveMember.Outcome
ITSELF = "the redrive"
"""Who acts, in the audit trail, when it stops itself."""


@dataclass(frozen=True)
class Advanced:
    """What one tick did to one redrive."""

    redrive: Redrive
    requeued: int
    settled: int


@dataclass(frozen=True)
class _Settled:
    outcome: str
    letters: int


@dataclass(frozen=True)
class _Requeued:
    queue: str
    outcome: str
    letters: int


def advance(now: datetime) -> list[Advanced]:
    """Move every redrive that is not over one step on; any number of callers at once is harmless.

    Each is one transaction that holds its row: a crash leaves a redrive as it was before the step.
    Drafts nobody started within ``conf().redrive_draft_kept`` are dropped.
    """
    _drop_drafts(now)
    going = Redrive.objects.filter(ended_at=None, started_at__isnull=False)
    going = going.exclude(state=State.WAITING).order_by("pk")
    return [done for pk in going.values_list("pk", flat=True) if (done := _advance(pk, now))]


def _advance(pk: int, now: datetime) -> Advanced | None:
    if asked := Redrive.objects.filter(pk=pk, state=State.RUNNING).first():
        _ask_next(asked, now)
    with transaction.atomic(using=sql.database().alias):
        redrive = Redrive.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
        if redrive is None or redrive.ended_at:
            return None
        settled = _settle(redrive, now)
        requeued = _apply(redrive, _next(redrive, now), now)
    if requeued:
        reach(Point.REQUEUED)
    facts = {"redrive": pk, "state": redrive.state, "requeued": requeued, "settled": settled}
    if requeued or settled:
        logger.info("redrive_advanced", extra=facts)
    return Advanced(redrive, requeued, settled)


def pace_of(redrive: Redrive) -> Pace:
    """Return the pace a redrive was started with, or has by now."""
    return Pace(
        how=redrive.pace,  # type: ignore[arg-type]  # the column's choices are its words
        rate=redrive.rate,
        stop_percent=redrive.stop_percent,
        stop_after=redrive.stop_after,
    )


def _next(redrive: Redrive, now: datetime) -> Next:
    now_at = standing(redrive)
    if redrive.state != State.RUNNING:
        return End() if not (now_at.running or now_at.pending) else Wait()
    since = now - (redrive.paced_at or now)
    budget = min(
        allowance(redrive.rate, since, longest=conf().redrive_every * 3),
        room(redrive.rate, now_at, unsettled=conf().redrive_unsettled),
        conf().redrive_batch_max,
    )
    return next_move(pace_of(redrive), now_at, step=redrive.step, budget=budget)


def _apply(redrive: Redrive, move: Next, now: datetime) -> int:
    match move:
        case Release(letters=letters, step=step):
            if requeued := _requeue(redrive, letters, now):
                _write(redrive, paced_at=_paced_at(redrive, requeued, now), step=step)
            return requeued
        case Stop(why=why):
            _write(redrive, state=State.STOPPED, why=why)
            record(redrive, Act(redrive.tenant, ITSELF, reason=why), "redrive stopped itself")
        case Ask(why=why):
            _write(redrive, state=State.PAUSED, why=why)
        case End():
            over = State.CANCELLED if redrive.state == State.CANCELLED else State.DONE
            _write(redrive, state=over, ended_at=now)
        case Wait():
            pass
    return 0


def _write(redrive: Redrive, **changes: Any) -> None:
    """Write what the tick decided; its row is locked by this transaction."""
    Redrive.objects.filter(pk=redrive.pk).update(**changes)
    for name, value in changes.items():
        setattr(redrive, name, value)


def _paced_at(redrive: Redrive, letters: int, now: datetime) -> datetime:
    """Spend the rate on what was requeued; what a wait earned beyond it is let go."""
    if redrive.step < len(STEPS):
        return now
    spent = (redrive.paced_at or now) + timedelta(seconds=letters / redrive.rate)
    return max(spent, now - conf().redrive_every)


def _settle(redrive: Redrive, now: datetime) -> int:
    rows = sql.rows_planned_anew(
        "settle_members",
        _Settled,
        redrive_id=redrive.pk,
        limit=conf().redrive_batch_max,
        now=now,
    )
    return sum(row.letters for row in rows)


def _requeue(redrive: Redrive, letters: int, now: datetime) -> int:
    reason = f"{redrive}: {redrive.reason}"
    rows = sql.rows_planned_anew(
        "requeue_members", _Requeued, redrive_id=redrive.pk, limit=letters, now=now,
        asking=_asking(), asked_since=now - conf().redrive_verified_for,
        actor=redrive.actor, reason=reason, lane=Job.LANE_REDRIVE,
        apart=timedelta(seconds=1 / redrive.rate),
    )  # fmt: skip
    for queue in {row.queue for row in rows if row.outcome == Outcome.RUNNING}:
        dispatch.ring_on_commit(queue, using=sql.database().alias)
    return sum(row.letters for row in rows if row.outcome == Outcome.RUNNING)


def _asking() -> list[str]:
    return [kind.name for kind in kinds() if verifies(kind)]


def _ask_next(redrive: Redrive, now: datetime) -> None:
    """Ask again about the letters whose turn comes next: the world may have changed."""
    stale = Q(asked_at=None) | Q(asked_at__lt=now - conf().redrive_verified_for)
    waiting = RedriveMember.objects.filter(stale, outcome=Outcome.PENDING)
    ask(redrive, waiting)


def _drop_drafts(now: datetime) -> None:
    old = Redrive.objects.filter(
        state=State.FROZEN, cutoff_at__lt=now - conf().redrive_draft_kept
    )
    for draft in old[:10]:
        RedriveMember.objects.filter(redrive=draft).delete()
        draft.delete()
