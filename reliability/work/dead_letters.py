"""What a person may do with dead letters: requeue, undo, discard, restore, resolve.

Each is a compare-and-set on the version the person saw. Whoever comes second is told who was
first; nothing happens twice.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from reliability import dispatch, sql
from reliability.conf import conf
from reliability.handlers import NotApplied
from reliability.models import AuditEntry, DeadLetter, Job, Tenant
from reliability.work.evidence import evidence_of

Status = DeadLetter.Status


@dataclass(frozen=True)
class Act:
    """Who acts, in which tenant, and why."""

    tenant: Tenant
    actor: str
    user_id: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Seen:
    """A letter as the person saw it: ``version`` is its job's."""

    letter_id: int
    version: int


@dataclass(frozen=True)
class Refusal:
    letter_id: int
    why: str


@dataclass(frozen=True)
class Moved:
    """What an act did. ``starts_at``: when requeued jobs may start, the time left to undo."""

    letter_ids: list[int]
    refused: list[Refusal]
    starts_at: datetime | None = None


def requeue(
    seen: Sequence[Seen], act: Act, *, lane: int = Job.LANE_LIVE, name: str = "requeue"
) -> Moved:
    """Give letters another round: same key, same operation, fresh attempts, in 10 s.

    At most ``conf().selection_max`` at a time. Refused one by one: letters that moved on, and
    those whose downstream may have forgotten their key. One audit entry, called ``name``.
    """
    _check(seen, act, reason=False)
    now = timezone.now()
    starts_at = now + conf().undo
    letters, refused = _open(seen, act)
    closed = [letter for letter in letters if _window_closed(letter, now)]
    refused += [Refusal(letter.pk, _why_closed(letter)) for letter in closed]
    erased = [letter for letter in letters if letter.job.key.erased_at]
    refused += [Refusal(letter.pk, _why_erased(letter)) for letter in erased]
    letters = [letter for letter in letters if letter not in (*closed, *erased)]
    with transaction.atomic(using=sql.database().alias):
        moved = _move(
            letters, seen, from_state=Job.State.DEAD, to_state=Job.State.READY,
            run_at=starts_at, lane=lane, held="", not_after=_kept_window(now), ended_at=None,
            round=F("round") + 1, round_starts=F("starts"), round_crashes=F("crashes"),
            round_crashes_alone=F("crashes_alone"), round_releases=F("releases"),
        )  # fmt: skip
        _close(moved, Status.REQUEUED, act, now)
        _record(act, name, moved)
        for queue in {letter.job.queue for letter in moved}:
            dispatch.ring_on_commit(queue, using=sql.database().alias)
    return _told(letters, moved, refused, starts_at)


def undo_requeue(seen: Seen, act: Act) -> Moved:
    """Take a requeue back before its job has started: the letter is open again, as it was."""
    _check([seen], act, reason=False)
    with transaction.atomic(using=sql.database().alias):
        letters = _lock([seen], act).filter(status=Status.REQUEUED, round=F("job__round") - 1)
        moved = _move(
            list(letters), [seen], from_state=Job.State.READY, to_state=Job.State.DEAD,
            unstarted=True, round=F("round") - 1, ended_at=timezone.now(),
        )  # fmt: skip
        _reopen(moved)
        _record(act, "undo requeue", moved)
    return _told_one(seen, moved)


def discard(seen: Sequence[Seen], act: Act) -> Moved:
    """Decide that letters need no effect. ``act.reason`` is required; their keys stay claimed."""
    _check(seen, act, reason=True)
    now = timezone.now()
    letters, refused = _open(seen, act)
    with transaction.atomic(using=sql.database().alias):
        moved = _move(letters, seen, from_state=Job.State.DEAD, to_state=Job.State.DISCARDED)
        _close(moved, Status.DISCARDED, act, now)
        _record(act, "discard", moved)
    return _told(letters, moved, refused)


def resolve(seen: Sequence[Seen], act: Act) -> Moved:
    """End letters whose effect is in the world already, or was brought about by hand.

    ``act.reason`` is required and says how that is known; the keys stay claimed, the operations
    stand. There is no way back.
    """
    _check(seen, act, reason=True)
    now = timezone.now()
    letters, refused = _open(seen, act)
    with transaction.atomic(using=sql.database().alias):
        moved = _move(letters, seen, from_state=Job.State.DEAD, to_state=Job.State.RESOLVED)
        _close(moved, Status.RESOLVED, act, now)
        _record(act, "resolve", moved)
    return _told(letters, moved, refused)


def restore(seen: Seen, act: Act) -> Moved:
    """Take a discard back: the letter is open again. Refused once its payload was purged."""
    _check([seen], act, reason=False)
    with transaction.atomic(using=sql.database().alias):
        letters = list(
            _lock([seen], act).filter(status=Status.DISCARDED, job__key__bodies__first=True)
        )
        moved = _move(letters, [seen], from_state=Job.State.DISCARDED, to_state=Job.State.DEAD)
        _reopen(moved)
        _record(act, "restore", moved)
    return _told_one(seen, moved)


def _check(seen: Sequence[Seen], act: Act, *, reason: bool) -> None:
    if reason and not act.reason.strip():
        raise ValueError("Say why: the reason is kept with the letter and in the audit trail.")
    if len(seen) > conf().selection_max:
        raise ValueError(f"At most {conf().selection_max} letters at a time.")


def _lock(seen: Sequence[Seen], act: Act) -> QuerySet[DeadLetter]:
    """Choose the tenant's letters among those seen; a foreign one is as if it did not exist."""
    return (
        DeadLetter.objects.select_related("job", "job__key", "job__source")
        .filter(tenant=act.tenant, pk__in=[one.letter_id for one in seen])
        .order_by("pk")
    )


def _open(seen: Sequence[Seen], act: Act) -> tuple[list[DeadLetter], list[Refusal]]:
    """Sort the letters seen into those still open at the seen version, and refusals."""
    versions = {one.letter_id: one.version for one in seen}
    found = list(_lock(seen, act))
    if len(found) != len(versions):
        missing = sorted(set(versions) - {letter.pk for letter in found})
        return [], [Refusal(pk, "no such letter") for pk in missing]
    fresh = [
        letter
        for letter in found
        if letter.status == Status.OPEN and letter.job.version == versions[letter.pk]
    ]
    stale = [letter for letter in found if letter not in fresh]
    return fresh, [Refusal(letter.pk, who_was_first(letter)) for letter in stale]


def who_was_first(letter: DeadLetter) -> str:
    """Say in one sentence what happened to a letter that is no longer as it was seen."""
    if letter.status == Status.OPEN:
        return "it came back since this page was loaded: look again"
    when = f" at {letter.closed_at:%H:%M:%S} UTC" if letter.closed_at else ""
    return f"{letter.closed_by or 'somebody'} was first: {letter.get_status_display()}{when}".lower()


def _window_closed(letter: DeadLetter, now: datetime) -> bool:
    """Tell whether downstream may have forgotten the key and nobody can show it is safe."""
    not_after = letter.job.not_after
    if not_after is None or not_after > now:
        return False
    return not isinstance(evidence_of(letter.job), NotApplied)


def _kept_window(now: datetime) -> Case:
    """Keep the window as the first sending opened it; a closed one opens anew at the next start."""
    return Case(When(not_after__lte=now, then=None), default=F("not_after"))


def _why_closed(letter: DeadLetter) -> str:
    return (
        f"window closed at {letter.job.not_after:%Y-%m-%d %H:%M} UTC: downstream may have "
        "forgotten the key and would do it again; nothing shows that it was not applied"
    )


def _why_erased(letter: DeadLetter) -> str:
    at = letter.job.key.erased_at
    return (
        f"its body was erased{f' on {at:%Y-%m-%d}' if at else ''}: nothing is left to work on"
    )


def _move(
    letters: Sequence[DeadLetter],
    seen: Sequence[Seen],
    *,
    from_state: str,
    to_state: str,
    unstarted: bool = False,
    **changes: object,
) -> list[DeadLetter]:
    """Move the letters' jobs by compare-and-set on state and version; return those that moved."""
    versions = {one.letter_id: one.version for one in seen}
    guard = Q(starts=F("round_starts")) if unstarted else Q()
    moved = []
    for letter in letters:
        won = Job.objects.filter(
            guard, pk=letter.job_id, state=from_state, version=versions[letter.pk]
        ).update(state=to_state, version=F("version") + 1, **changes)
        if won:
            moved.append(letter)
    return moved


def _close(letters: Sequence[DeadLetter], status: str, act: Act, now: datetime) -> None:
    DeadLetter.objects.filter(pk__in=[letter.pk for letter in letters]).update(
        status=status, closed_at=now, closed_by=act.actor, closed_reason=act.reason
    )


def _reopen(letters: Sequence[DeadLetter]) -> None:
    DeadLetter.objects.filter(pk__in=[letter.pk for letter in letters]).update(
        status=Status.OPEN, closed_at=None, closed_by="", closed_reason=""
    )


def _record(act: Act, name: str, letters: Sequence[DeadLetter]) -> None:
    """Write the act's one audit entry, with the number of its members and their digest."""
    if not letters:
        return
    ids = [str(letter.public_id) for letter in letters]
    AuditEntry.objects.record(
        act.tenant,
        actor=act.actor,
        user_id=act.user_id,
        act=name,
        about="dead letter",
        about_id=ids[0] if len(ids) == 1 else f"{len(ids)} letters",
        reason=act.reason,
        count=len(ids),
        digest=hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest(),
        members=ids,
    )


def _told(
    letters: Sequence[DeadLetter],
    moved: Sequence[DeadLetter],
    refused: list[Refusal],
    starts_at: datetime | None = None,
) -> Moved:
    ids = {letter.pk for letter in moved}
    beaten = [letter.pk for letter in letters if letter.pk not in ids]
    now_as = DeadLetter.objects.filter(pk__in=beaten)
    refused += [Refusal(letter.pk, who_was_first(letter)) for letter in now_as]
    return Moved(sorted(ids), refused, starts_at if ids else None)


def _told_one(seen: Seen, moved: Sequence[DeadLetter]) -> Moved:
    if moved:
        return Moved([seen.letter_id], [])
    return Moved([], [Refusal(seen.letter_id, "too late: it has started or moved on")])
