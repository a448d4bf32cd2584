"""Recovering: what never arrived is put through layer 1, under its operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from reliability import sql
from reliability.claim.accept import Fate, claim
from reliability.claim.door import door
from reliability.errors import AddressRefused, NoAnswer
from reliability.models import (
    ApiCredential,
    DeadLetter,
    Discrepancy,
    Job,
    Operation,
    Receipt,
    Source,
    StatementLine,
)
from reliability.reconcile.discrepancies import (
    Changed,
    Refusal,
    move,
    who_was_first,
)
from reliability.reconcile.providers.known import OBJECTS
from reliability.reconcile.providers.provided import CannotFetch, Fetched
from reliability.reconcile.remake import Unmade, event_from
from reliability.reconcile.verdicts import Cause
from reliability.work.dead_letters import Act, Seen, requeue

Status = Discrepancy.Status
ENDED: Mapping[str, str] = {
    Job.State.DONE: "It has taken effect already; run the compare again to see it.",
    Job.State.RESOLVED: "It has taken effect already; run the compare again to see it.",
    Job.State.DISCARDED: "Its dead letter was discarded; restore the letter first.",
}
"""Why an operation whose job has come to an end is not recovered."""
A_GROUP = "It is a group whose operations are here; requeue those that did not take effect."
NO_LINE = "Its statement line is not kept any more, or its source has no door."
ASKED_ALREADY = "You asked for this recovery: a second person has to agree."


@dataclass(frozen=True)
class Recovered:
    """It is on its way: ``how`` says in one sentence by what."""

    discrepancy: Discrepancy
    how: str


@dataclass(frozen=True)
class Asked:
    """It is worth more than one person may recover: a second one has to agree."""

    discrepancy: Discrepancy


class _Undone(Exception):
    """Take the claim back with the transaction: somebody was first at the discrepancy."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


def recover(
    discrepancy: Discrepancy, act: Act, *, from_line: bool = False
) -> Recovered | Asked | Refusal:
    """Let a missing event take effect once, whatever became of it before.

    Above ``conf().recover_alone_max`` the first call only asks, and another person's recovers.
    ``discrepancy`` is as the person saw it (its version is compared). Where its operation was
    claimed, its own job goes on: a dead letter is requeued, nothing is claimed anew. Otherwise an
    event is made of the provider's object, or of the statement's line where the provider has it no
    longer, and taken in under the operation: a webhook that comes late is absorbed. A second call
    finds it recovering and does nothing. ``from_line`` asks no provider.
    """
    if why := _unfit(discrepancy, act):
        return Refusal(why)
    if discrepancy.needs_two and discrepancy.recover_asked_by in ("", act.actor):
        return ask(discrepancy, act)
    try:
        # Asking the provider takes time, so it comes before the transaction.
        provided = None if from_line or _job_of(discrepancy) else _provided(discrepancy)
    except (CannotFetch, AddressRefused, NoAnswer) as error:
        return Refusal(f"{error}. It stays open; it can also be recovered from the line.")
    return _set_going(discrepancy, act, provided)


def _set_going(
    discrepancy: Discrepancy, act: Act, provided: Mapping[str, Any] | None
) -> Recovered | Refusal:
    try:
        with transaction.atomic(using=sql.database().alias):
            job = _job_of(discrepancy)
            if job:
                return _resume(discrepancy, job, act)
            return _take_in(discrepancy, act, provided)
    except _Undone as undone:
        return undone.refusal


def _unfit(discrepancy: Discrepancy, act: Act) -> str:
    if discrepancy.tenant_id != act.tenant.pk:
        return "There is no such discrepancy."
    if discrepancy.family != Discrepancy.Family.MISSING:
        return "Only what is missing here can be recovered."
    return "" if discrepancy.status == Status.OPEN else who_was_first(discrepancy)


def ask(discrepancy: Discrepancy, act: Act) -> Asked | Refusal:
    """Ask a second person to recover it; from now on it takes two, whatever it is worth."""
    if discrepancy.recover_asked_by:
        return Refusal(ASKED_ALREADY)
    changed = move(
        discrepancy, act, "ask to recover", from_status=[Status.OPEN],
        recover_asked_by=act.actor, needs_two=True,
    )  # fmt: skip
    return changed if isinstance(changed, Refusal) else Asked(changed.discrepancy)


def may_be_asked(source: Source) -> bool:
    """Say whether the source's provider gives objects, and whether we hold a key for it."""
    return source.scheme in OBJECTS and ApiCredential.objects.filter(source=source).exists()


def _provided(discrepancy: Discrepancy) -> Mapping[str, Any] | None:
    """Ask the provider for the object, where this source may; ``None``: the line has to do."""
    source = discrepancy.source
    if not may_be_asked(source):
        return None
    fetch = OBJECTS[source.scheme]
    found = fetch(source, discrepancy.operation_class, discrepancy.reference)
    return found.content if isinstance(found, Fetched) else None


def _job_of(discrepancy: Discrepancy) -> Job | None:
    """Return the job of the operation, if anybody claimed it by now."""
    operation = Operation.objects.filter(
        tenant_id=discrepancy.tenant_id,
        source_id=discrepancy.source_id,
        operation_class=discrepancy.operation_class,
        reference=discrepancy.reference,
    ).first()
    return Job.objects.filter(key_id=operation.key_id).first() if operation else None


def _resume(discrepancy: Discrepancy, job: Job, act: Act) -> Recovered | Refusal:
    """Go on with the job that has the operation; only a dead one needs a push."""
    match job.state:
        case ended if ended in ENDED:
            return Refusal(ENDED[ended])
        case Job.State.DEAD:
            how = _requeue(job, act)
            if isinstance(how, Refusal):
                return how
        case _:
            how = "Its event is accepted and still being worked."
    return _recovering(discrepancy, act, job=job, how=how)


def _requeue(job: Job, act: Act) -> str | Refusal:
    letter = DeadLetter.objects.open().filter(job=job).first()
    if letter is None:
        return Refusal("Its dead letter has moved on; look again.")
    moved = requeue([Seen(letter.pk, job.version)], act)
    if moved.refused:
        return Refusal(moved.refused[0].why)
    return "Its dead letter was requeued: same key, fresh attempts."


def _take_in(
    discrepancy: Discrepancy, act: Act, provided: Mapping[str, Any] | None
) -> Recovered | Refusal:
    if discrepancy.cause != Cause.NEVER_RECEIVED:
        return Refusal(A_GROUP)
    found = _event(discrepancy, provided)
    if isinstance(found, Refusal):
        return found
    made_of = "built from the statement’s line" if provided is None else "fetched from them"
    how = f"An event {made_of} was accepted under its operation."
    job = Job.objects.filter(public_id=found.job_id).first() if found.job_id else None
    return _recovering(discrepancy, act, job=job, how=how)


def _event(discrepancy: Discrepancy, provided: Mapping[str, Any] | None) -> Fate | Refusal:
    lines = StatementLine.objects.select_related("statement__source")
    line = lines.filter(pk=discrepancy.line_id).first() if discrepancy.line_id else None
    entry = door(discrepancy.source.endpoint_token)
    if line is None or entry is None:
        return Refusal(NO_LINE)
    asked = event_from(discrepancy, line, entry, provided=provided)
    if isinstance(asked, Unmade):
        return Refusal(asked.why)
    [fate] = claim(entry.source, [asked])
    if fate.verdict in (Receipt.Verdict.ACCEPTED, Receipt.Verdict.ABSORBED):
        return fate
    return Refusal(
        f"The key {asked.key} was claimed before, by something else; resolve it by hand."
    )


def _recovering(discrepancy: Discrepancy, act: Act, *, job: Job | None, how: str) -> Recovered:
    changed = move(
        discrepancy, act, "recover", from_status=[Status.OPEN], status=Status.RECOVERING,
        job=job, recovered_by=act.actor,
    )  # fmt: skip
    match changed:
        case Refusal():
            raise _Undone(changed)
        case Changed(discrepancy=now):
            return Recovered(now, how)
