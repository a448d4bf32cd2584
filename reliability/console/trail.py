"""The whole story of one operation on one line: every delivery, start, burial, act and verdict."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import Q, QuerySet
from django.urls import reverse

from reliability.console.compared import CAUSES
from reliability.console.parts import number, span
from reliability.models import (
    Attempt,
    AuditEntry,
    DeadLetter,
    Discrepancy,
    Job,
    ProcessedKey,
    Receipt,
    StatementLine,
    Verdict,
)  # fmt: skip

EACH_MAX = 200
"""Rows of one kind that a story tells; it says when there are more."""
LETTER = "dead letter"


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One thing that happened; ``layer`` names who did it: 1 claim, 2 sweep, 3 compare."""

    at: datetime
    state: str
    lead: str
    aside: str = ""
    text: str = ""
    detail: str = ""
    href: str = ""
    layer: int = 0


@dataclass(frozen=True)
class Story:
    """What is known of one claim, with every event its operation absorbed; oldest first."""

    key: ProcessedKey
    absorbed: list[ProcessedKey]
    job: Job | None
    moments: list[Moment]
    arrivals: int
    verdict: Verdict | None

    @property
    def say(self) -> str:
        """The story in one sentence."""
        starts = self.job.starts if self.job else 0
        told = f"Arrived {_times(self.arrivals)}, started {_times(starts)}, {self._fate()}."
        match self.verdict:
            case Verdict(verdict="matched"):
                return f"{told} The provider’s statement agrees."
            case Verdict(verdict=verdict):
                return f"{told} The compare says: {verdict.replace('_', ' ')}."
            case _:
                return told

    def _fate(self) -> str:
        return _FATES[self.job.state] if self.job else "and its job is gone, its time over"


_FATES: dict[str, str] = {
    Job.State.DONE: "took effect once",
    Job.State.DEAD: "and waits as a dead letter",
    Job.State.DISCARDED: "and was discarded by a person",
    Job.State.RESOLVED: "and was resolved as already applied",
    Job.State.RUNNING: "and runs now",
    Job.State.READY: "and waits for its next start",
}


def story(key: ProcessedKey) -> Story:
    """Gather the story of a claim. About ten queries, whatever its length."""
    job = getattr(key, "job", None)
    siblings = list(_absorbed_by(key)[:EACH_MAX])
    receipts = list(
        Receipt.objects.filter(key__in=[key, *siblings])
        .select_related("key", "delivery").order_by("at", "pk")[:EACH_MAX]
    )  # fmt: skip
    verdicts = list(_verdicts(key))
    moments = [
        *_arrivals(receipts, key),
        *(_work(job) if job else ()),
        *_compares(verdicts),
        *_disagreements(key),
    ]
    return Story(
        key, siblings, job, sorted(moments, key=lambda m: m.at), len(receipts),
        verdicts[-1] if verdicts else None,
    )  # fmt: skip


def story_of_work(job: Job) -> list[Moment]:
    """Tell a job's starts, burials and the acts on its letters; oldest first."""
    return sorted(_work(job), key=lambda moment: moment.at)


def lines_only(lines: list[StatementLine]) -> list[Moment]:
    """Tell of a reference that no event of ours ever carried."""
    return [
        Moment(
            at=line.statement.created_at,
            state="unexpected",
            lead=f"Named on line {number(line.position)} of {line.statement.source}",
            aside=f"statement of {line.statement.day:%-d %b %Y}",
            text=f"{line.kind}, {line.reference}",
            layer=3,
        )
        for line in sorted(lines, key=lambda line: line.statement.created_at)
    ]


def _absorbed_by(key: ProcessedKey) -> "QuerySet[ProcessedKey]":
    return ProcessedKey.objects.filter(
        tenant_id=key.tenant_id, source_id=key.source_id, absorbed=True,
        operation_class=key.operation_class, operation_reference=key.operation_reference,
    ).order_by("pk") if key.operation_class else ProcessedKey.objects.none()  # fmt: skip


def _arrivals(receipts: list[Receipt], key: ProcessedKey) -> Iterator[Moment]:
    for n, receipt in enumerate(receipts, start=1):
        again = "" if n == 1 else f"{n}. delivery"
        other = f" as {receipt.key.key}" if receipt.key_id != key.pk else ""
        state, lead, text = _ARRIVED[receipt.verdict]
        if receipt.suspected_replay:
            text += " An equal body came under another key before."
        yield Moment(
            at=receipt.at, state=state, lead=f"{_how(receipt)}{lead}{other}", aside=again,
            text=f"{text} {_answered(receipt)}".strip(), layer=1,
        )  # fmt: skip


_ARRIVED: dict[str, tuple[str, str, str]] = {
    Receipt.Verdict.ACCEPTED: (
        "accepted", " and claimed", "The key was free: claimed and queued in one commit.",
    ),
    Receipt.Verdict.DUPLICATE: (
        "duplicate", " again, a duplicate", "The key was claimed: nothing was queued.",
    ),
    Receipt.Verdict.ABSORBED: (
        "absorbed", ", absorbed", "Its operation had been claimed by another event: no work.",
    ),
    Receipt.Verdict.CONFLICT: (
        "conflict", " again, in conflict", "It differs from the first, which stands.",
    ),
}  # fmt: skip


def _how(receipt: Receipt) -> str:
    return "Delivered" if receipt.delivery else "Enqueued"


def _answered(receipt: Receipt) -> str:
    if receipt.delivery is None:
        return ""
    delivery = receipt.delivery
    return f"{number(delivery.size_bytes)} bytes, signature valid, answered {delivery.answer}."


def _work(job: Job) -> Iterator[Moment]:
    yield from _starts(job)
    letters = list(DeadLetter.objects.filter(job=job).order_by("round")[:EACH_MAX])
    yield from (_burial(letter) for letter in letters)
    yield from _acts(letters)
    if job.state == Job.State.RUNNING and job.started_at:
        yield Moment(at=job.started_at, state="running", lead="Started", aside=job.worker)


def _starts(job: Job) -> Iterator[Moment]:
    attempts = Attempt.objects.filter(job=job).order_by("number", "pk")
    for attempt in islice(attempts, EACH_MAX):
        lasted = span(attempt.ended_at - attempt.started_at)
        again = (
            f"; next try {span(attempt.retry_at - attempt.ended_at)} later"
            if attempt.retry_at
            else ""
        )
        yield Moment(
            at=attempt.ended_at, state=attempt.outcome, lead=_STARTED[attempt.outcome].format(attempt.number),
            aside=f"worker {attempt.worker or 'unknown'}, {lasted}{again}",
            text=": ".join(filter(None, (attempt.error_type, attempt.message))),
            detail=attempt.traceback, layer=2 if attempt.outcome == "lost" else 0,
        )  # fmt: skip


_STARTED: dict[str, str] = {
    Attempt.Outcome.DONE: "Start {} done",
    Attempt.Outcome.FAILED: "Start {} failed",
    Attempt.Outcome.RELEASED: "Start {} released, the worker was shutting down",
    Attempt.Outcome.LOST: "Start {} lost, its lease ran out",
    Attempt.Outcome.LATE: "Start {} done after all, late",
}


def _burial(letter: DeadLetter) -> Moment:
    return Moment(
        at=letter.buried_at, state="dead", lead=f"Buried as DL-{letter.pk}",
        aside=f"round {letter.round}, {letter.outcome}", text=letter.reason,
        href=reverse("console:dead_letter", args=[letter.public_id]),
    )  # fmt: skip


def _acts(letters: list[DeadLetter]) -> Iterator[Moment]:
    entries = acts_on(letters)[:EACH_MAX] if letters else ()
    for entry in entries:
        many = entry.facts.get("count", 1)
        yield Moment(
            at=entry.at, state="requeued" if "requeue" in entry.act else "closed",
            lead=f"{_ACTS.get(entry.act, entry.act)} by {entry.actor}",
            aside=f"with {number(many - 1)} others" if many > 1 else "",
            text=entry.reason,
        )  # fmt: skip


_ACTS = {
    "requeue": "Requeued",
    "undo requeue": "Requeue undone",
    "discard": "Discarded",
    "restore": "Restored",
    "resolve": "Resolved",
    "reveal payload": "Payload shown",
}


def acts_on(letters: list[DeadLetter]) -> "QuerySet[AuditEntry]":
    """Return the audit entries about these letters, oldest first, acts on many included."""
    ids = [str(letter.public_id) for letter in letters]
    named = Q(about_id__in=ids)
    for public_id in ids:
        named |= Q(facts__contains={"members": [public_id]})
    entries = AuditEntry.objects.filter(named, about=LETTER, tenant_id=letters[0].tenant_id)
    return entries.order_by("number")


def _verdicts(key: ProcessedKey) -> "QuerySet[Verdict]":
    return (
        Verdict.objects.filter(operation__key=key, report__current=True)
        .select_related("report__source", "line").order_by("report__day")[:EACH_MAX]
    )  # fmt: skip


def _compares(verdicts: list[Verdict]) -> Iterator[Moment]:
    for verdict in verdicts:
        line = f" with line {number(verdict.line.position)}" if verdict.line else ""
        yield Moment(
            at=verdict.report.created_at, state=verdict.verdict,
            lead=f"{verdict.verdict.replace('_', ' ').capitalize()}{line}",
            aside=f"{verdict.report.source}, {verdict.report.day:%-d %b %Y}",
            text=CAUSES.get(verdict.cause, verdict.cause), layer=3,
        )  # fmt: skip


def _disagreements(key: ProcessedKey) -> Iterator[Moment]:
    if not key.operation_class:
        return
    rows = Discrepancy.objects.filter(
        source_id=key.source_id,
        operation_class=key.operation_class,
        reference=key.operation_reference,
    )
    for row in rows[:EACH_MAX]:
        yield Moment(
            at=row.opened_at, state=row.status, lead=f"Discrepancy opened: {row.verdict}",
            text=CAUSES.get(row.cause, row.cause), layer=3,
        )  # fmt: skip
        if row.closed_at:
            yield Moment(
                at=row.closed_at, state="resolved", lead=f"Discrepancy {row.status}",
                aside=row.closed_by, text=row.closed_reason, layer=3,
            )  # fmt: skip


def _times(count: int) -> str:
    match count:
        case 0:
            return "never"
        case 1:
            return "once"
        case 2:
            return "twice"
        case _:
            return f"{number(count)} times"
