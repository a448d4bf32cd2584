"""A letter's file: everything its page shows, gathered in a fixed number of queries."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reliability.console.answers import Heard, answers_of
from reliability.console.handling import Handling, attempts_told, handling
from reliability.console.lists.dead_letters import headline
from reliability.console.parts import span
from reliability.console.payload import Shown, shown
from reliability.console.trail import EACH_MAX, Moment, acts_on, story_of_work
from reliability.models import (
    Attempt,
    AuditEntry,
    Body,
    BodyEdit,
    DeadLetter,
    Discrepancy,
    Job,
    Receipt,
    Verdict,
)  # fmt: skip


@dataclass(frozen=True)
class Brought:
    """One delivery of the letter's key; ``differs`` is what a conflicting one claimed."""

    receipt: Receipt
    differs: str

    @property
    def digest(self) -> str:
        """The first eight hexadecimal digits of the request's SHA-256."""
        return bytes(self.receipt.delivery.sha256).hex()[:8] if self.receipt.delivery else ""


@dataclass(frozen=True, kw_only=True)
class File:
    """What the page of one letter shows."""

    say: str
    attempts: str
    preflight: list[str]
    moments: list[Moment]
    payload: Shown | None
    edits: list[BodyEdit]
    brought: list[Brought]
    answers: list[Heard]
    acts: list[AuditEntry]
    handling: Handling
    discrepancies: list[Discrepancy]
    verdict: Verdict | None
    starts_in: timedelta | None
    """Time left to undo a requeue; ``None`` where there is nothing to undo."""

    @property
    def undoable(self) -> bool:
        return self.starts_in is not None


def file_of(letter: DeadLetter, *, now: datetime, redacted: bool) -> File:
    """Gather a letter's file; ``redacted`` keeps personal data and secrets back."""
    job = letter.job
    declared = handling(letter.kind, own_job=letter.source.internal)
    body = Body.objects.filter(key=job.key_id).order_by("-first", "pk").first()
    return File(
        say=said(letter),
        attempts=_attempts(letter),
        preflight=list(_preflight(letter, declared, now)),
        moments=story_of_work(job)[::-1],
        payload=shown(bytes(body.raw), redacted=redacted) if body else None,
        edits=list(BodyEdit.objects.filter(body__key=job.key_id).order_by("number")),
        brought=_brought(letter),
        answers=answers_of(job, redacted=redacted),
        acts=list(acts_on([letter]).order_by("-number")[:EACH_MAX]),
        handling=declared,
        discrepancies=_discrepancies(letter),
        verdict=_verdict(letter),
        starts_in=_starts_in(letter, now),
    )


def said(letter: DeadLetter) -> str:
    """Say in one sentence why it died and where it stands."""
    match letter.status:
        case DeadLetter.Status.OPEN:
            stands = "It waits for a person."
        case DeadLetter.Status.REQUEUED:
            stands = (
                f"It has been requeued; its job is {letter.job.get_state_display().lower()}."
            )
        case _:
            stands = f"It is {letter.get_status_display().lower()}."
    return f"{headline(letter).rstrip('.')}. {stands}"


def _attempts(letter: DeadLetter) -> str:
    ends = Attempt.objects.filter(job=letter.job_id, round=letter.round)
    outcomes = list(ends.values_list("outcome", flat=True)[: 10 * EACH_MAX])
    return attempts_told(
        outcomes.count(Attempt.Outcome.FAILED), outcomes.count(Attempt.Outcome.LOST),
        kind=letter.kind, own_job=letter.source.internal,
    )  # fmt: skip


def _preflight(letter: DeadLetter, declared: Handling, now: datetime) -> Iterator[str]:
    if declared.attempts is None:
        yield "No handler of this kind is installed here: a requeue would wait, held."
    else:
        yield f"A requeue gives it {declared.policy.removeprefix('up to ')} again; it {declared.risk}."
    closes_at = letter.job.not_after
    if closes_at is None:
        yield "No window: its sink never forgets the key, or it has not been sent yet."
    elif closes_at > now:
        yield f"Window closes in {span(closes_at - now)}."
    else:
        yield f"Window closed {span(now - closes_at)} ago: downstream may have forgotten the key."


def _brought(letter: DeadLetter) -> list[Brought]:
    receipts = Receipt.objects.filter(key=letter.job.key_id).select_related("delivery")
    return [
        Brought(
            one, json.dumps(one.differs, ensure_ascii=False, indent=2) if one.differs else ""
        )
        for one in receipts.order_by("at", "pk")[:EACH_MAX]
    ]


def _discrepancies(letter: DeadLetter) -> list[Discrepancy]:
    key = letter.job.key
    if not key.operation_class:
        return []
    rows = Discrepancy.objects.filter(
        source=letter.source_id, operation_class=key.operation_class,
        reference=key.operation_reference,
    )  # fmt: skip
    return list(rows.select_related("report")[:EACH_MAX])


def _verdict(letter: DeadLetter) -> Verdict | None:
    verdicts = Verdict.objects.filter(operation__key=letter.job.key_id, report__current=True)
    return verdicts.select_related("report", "line").order_by("-report__day").first()


def _starts_in(letter: DeadLetter, now: datetime) -> timedelta | None:
    job = letter.job
    undoable = (
        letter.status == DeadLetter.Status.REQUEUED
        and job.state == Job.State.READY
        and job.round == letter.round + 1
        and job.starts == job.round_starts
    )
    return max(job.run_at - now, timedelta(0)) if undoable else None
