"""Recovering what a day misses in one act: what it would do of each, and doing it."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reliability.claim.door import Door, door
from reliability.conf import conf
from reliability.models import DeadLetter, Discrepancy, Job, Source
from reliability.reconcile.discrepancies import Refusal, who_was_first
from reliability.reconcile.recover import (
    A_GROUP,
    ASKED_ALREADY,
    ENDED,
    NO_LINE,
    Asked,
    Recovered,
    ask,
    may_be_asked,
    recover,
)
from reliability.reconcile.remake import Unmade, event_from
from reliability.reconcile.verdicts import Cause
from reliability.work.dead_letters import Act

Claimed = Mapping[tuple[str, str], tuple[Job, DeadLetter | None]]


@dataclass(frozen=True)
class WillRecover:
    """Its event would be taken in, and ``how`` it would be made."""

    discrepancy: Discrepancy
    how: str


@dataclass(frozen=True)
class WillAsk:
    """A second person would be asked to recover it, and why."""

    discrepancy: Discrepancy
    why: str


@dataclass(frozen=True)
class LeftOut:
    """Nothing would be done about it, and why; ``letter`` is where it waits, if it does."""

    discrepancy: Discrepancy
    why: str
    letter: DeadLetter | None = None


Outlook = WillRecover | WillAsk | LeftOut


@dataclass
class Many:
    """What became of each; ``unreached`` are left for another act, their time was up."""

    recovered: list[Discrepancy] = field(default_factory=list)
    asked: list[Discrepancy] = field(default_factory=list)
    left: list[LeftOut] = field(default_factory=list)
    unreached: int = 0


def recover_many(source: Source, seen: Sequence[Discrepancy], act: Act) -> Many:
    """Recover each as ``recover`` does, with an audit entry of its own; leave the rest alone.

    ``seen`` are of one source, each with the version that was shown, at most
    ``conf().selection_max``: whatever moved on since is left out. After ``conf().recover_for``
    no further one is begun.
    """
    if len(seen) > conf().selection_max:
        raise ValueError(f"At most {conf().selection_max} discrepancies at a time.")
    many, until = Many(), time.monotonic() + conf().recover_for.total_seconds()
    for one in outlook(source, seen, act.actor):
        if time.monotonic() > until:
            many.unreached += 1
        else:
            _do(one, act, many)
    return many


def _do(one: Outlook, act: Act, many: Many) -> None:
    match _done(one, act):
        case Recovered(discrepancy=now):
            many.recovered.append(now)
        case Asked(discrepancy=now):
            many.asked.append(now)
        case Refusal(why=why):
            many.left.append(LeftOut(one.discrepancy, why))


def _done(one: Outlook, act: Act) -> Recovered | Asked | Refusal:
    match one:
        case WillRecover(discrepancy=discrepancy):
            return recover(discrepancy, act)
        case WillAsk(discrepancy=discrepancy):
            return ask(discrepancy, act)
        case LeftOut(why=why):
            return Refusal(why)


def outlook(source: Source, found: Sequence[Discrepancy], actor: str) -> list[Outlook]:
    """Say of each what ``recover_many`` would do for ``actor``, in order; asks no provider.

    ``found`` are of ``source`` and know their ``line__statement__source``. What one act takes in
    is worth no more of a currency than one person may recover alone: of a currency that is, a
    second person is asked for all.
    """
    entry, claimed = door(source.endpoint_token), _claimed(source, found)
    how = (
        "fetched from the provider’s API, or made from its line if they have it no longer"
        if may_be_asked(source)
        else "its event is made from the statement’s line"
    )
    each = [_whether(one, claimed, entry, actor) or WillRecover(one, how) for one in found]
    over = _above_alone_max(source, each)
    return [_asked_if(one, over) for one in each]


def _claimed(source: Source, found: Iterable[Discrepancy]) -> Claimed:
    """Find the jobs that have the operations by now, with the open letter of a dead one."""
    named = {(one.operation_class, one.reference) for one in found}
    jobs = Job.objects.filter(
        key__operation__tenant=source.tenant_id,
        key__operation__source=source,
        key__operation__operation_class__in={name for name, _ in named},
        key__operation__reference__in={reference for _, reference in named},
    ).select_related("key__operation")
    letters = {one.job_id: one for one in DeadLetter.objects.open().filter(job__in=jobs)}
    return {
        (job.key.operation.operation_class, job.key.operation.reference): (
            job, letters.get(job.pk),
        )
        for job in jobs
    }  # fmt: skip


def _whether(
    one: Discrepancy, claimed: Claimed, entry: Door | None, actor: str
) -> LeftOut | WillAsk | None:
    """Say why this one is not recovered by ``actor`` now; ``None``: it is."""
    here = claimed.get((one.operation_class, one.reference))
    if one.status != Discrepancy.Status.OPEN:
        return LeftOut(one, who_was_first(one))
    if here:
        return _is_here(one, *here)
    if why := _unmakable(one, entry):
        return LeftOut(one, why)
    return _by_one_or_two(one, actor)


def _by_one_or_two(one: Discrepancy, actor: str) -> LeftOut | WillAsk | None:
    if not one.needs_two or one.recover_asked_by not in ("", actor):
        return None
    if one.recover_asked_by:
        return LeftOut(one, ASKED_ALREADY)
    return WillAsk(one, "It is worth more than one person may recover.")


def _is_here(one: Discrepancy, job: Job, letter: DeadLetter | None) -> LeftOut:
    if letter:
        return LeftOut(one, "It is in a dead letter: requeue that.", letter)
    return LeftOut(one, ENDED.get(job.state, "Its event is here and still being worked."))


def _unmakable(one: Discrepancy, entry: Door | None) -> str:
    if one.cause != Cause.NEVER_RECEIVED:
        return A_GROUP
    if one.line is None or entry is None:
        return NO_LINE
    made = event_from(one, one.line, entry)
    return made.why if isinstance(made, Unmade) else ""


def _above_alone_max(source: Source, each: Iterable[Outlook]) -> frozenset[str]:
    """Return the currencies of which one person would recover too much in this act."""
    limits = source.statement_options.get("recover_limit_minor", {})
    worth: Counter[tuple[str, int]] = Counter()
    for one in each:
        if isinstance(one, WillRecover) and not one.discrepancy.needs_two:
            at = (one.discrepancy.currency, one.discrepancy.exponent)
            worth[at] += abs(one.discrepancy.their_minor or 0)
    return frozenset(
        currency
        for (currency, exponent), minor in worth.items()
        if minor > limits.get(currency, conf().recover_alone_max * 10**exponent)
    )


def _asked_if(one: Outlook, over: frozenset[str]) -> Outlook:
    alone = isinstance(one, WillRecover) and not one.discrepancy.needs_two
    if alone and one.discrepancy.currency in over:
        return WillAsk(one.discrepancy, "Together they are more than one person may recover.")
    return one
