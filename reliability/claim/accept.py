"""Layer 1: an event is taken in once, however often and in however many copies it comes."""

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Literal, Protocol

from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from reliability import dispatch, sql
from reliability.errors import TryAgain
from reliability.handlers import MappedOperation
from reliability.models import Operation, Receipt

FEW = 40
"""Up to so many events the statement's plan for any values is the best; see ``sql``."""

Outcome = Literal["unparseable", "unroutable", "suspect", "expired"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One event that asks to be taken in. ``buried`` says why it is dead at the door."""

    key: str
    kind: str
    body: bytes
    queue: str = "outside"
    downstream_key: str = field(default_factory=lambda: str(uuid.uuid4()))
    operation: MappedOperation | None = None
    occurred_at: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    replayable: bool = False
    held: str = ""
    unconfirmed: bool = False
    asked_by: str = ""
    buried: tuple[Outcome, str] | None = None

    @property
    def bell(self) -> str:
        """The queue to ring for it: where its provider is asked first, if that is needed."""
        return "outside" if self.unconfirmed else self.queue


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """The facts of the request that carried the events; its body was verified."""

    peer: str | None
    size_bytes: int
    sha256: str
    answer: int
    scheme: str
    secret_id: int | None
    verifier_version: int
    signed_at: datetime | None


@dataclass(frozen=True)
class Fate:
    """What became of one asked event. ``claimant`` is the key that holds its operation."""

    n: int
    verdict: str
    job_id: uuid.UUID | None
    state: str | None
    result: Any
    claimant: str | None
    done_at: datetime | None = None


@dataclass(frozen=True)
class _Answer:
    """A row of the claim. Without a verdict, a concurrent claim of its key won: ask again."""

    n: int
    verdict: str | None
    job_id: uuid.UUID | None
    state: str | None
    result: Any
    claimant: str | None
    done_at: datetime | None
    delivery_id: int | None

    @property
    def is_new(self) -> bool:
        return self.verdict == Receipt.Verdict.ACCEPTED


class Keeper(Protocol):
    """Who keeps the keys: a ``Source``, or as much of one as a claim needs."""

    @property
    def pk(self) -> int: ...
    @property
    def tenant_id(self) -> int: ...


@dataclass(frozen=True)
class Asking:
    """What one delivery, or one call of ``enqueue``, asks for: each key once."""

    source: Keeper
    asked: Sequence[Asked]
    delivered: Delivered | None = None


def claim(
    source: Keeper, asked: Sequence[Asked], *, delivered: Delivered | None = None
) -> list[Fate]:
    """Claim each event's key and operation, queue its job, and record the receipts; all or none.

    Runs in one transaction (a savepoint inside the caller's). Bells ring after commit. Two events
    of one key in ``asked`` are one event. Raises ``TryAgain`` when somebody holds a key for longer
    than the lock timeout, or won a race that must be looked at again.
    """
    once = list({event.key: event for event in asked}.values())
    return claim_all([Asking(source, once, delivered)])[0]


def claim_all(askings: Sequence[Asking], *, first: str = "") -> list[list[Fate]]:
    """Do ``claim`` for several at once: all or none. No key may stand in two of them.

    ``first`` is a command to run in the same transaction, such as one that sets its time-outs.
    """
    rows = [
        _Row(n, d, one.source, event)
        for n, (d, one, event) in enumerate(
            ((d, one, event) for d, one in enumerate(askings, 1) for event in one.asked), 1
        )
    ]
    try:
        with _all_or_none(rows):
            if first:
                sql.command(first)
            answers = _claim(rows, _deliveries(askings))
            _ring(rows, answers)
            fates = [_fate(row, answer) for row, answer in zip(rows, answers, strict=True)]
    except IntegrityError as error:
        if "operation_belongs_to_its_key" not in str(error):
            raise
        raise TryAgain("another delivery of this key came first; ask again") from error
    except OperationalError as error:
        raise TryAgain("the database cannot take this event right now; ask again") from error
    given = iter(fates)
    return [list(islice(given, len(one.asked))) for one in askings]


@dataclass(frozen=True)
class _Row:
    """One event as the statement takes it: its number, and that of what asked for it."""

    n: int
    d: int
    source: Keeper
    event: Asked
    delivery_id: int | None = None


def _all_or_none(rows: Sequence[_Row]) -> AbstractContextManager[None]:
    """Open a transaction, unless the one statement of one event is one by itself."""
    if len(rows) == 1 and not sql.database().in_atomic_block:
        return nullcontext()
    return transaction.atomic(using=sql.database().alias)


def _claim(rows: Sequence[_Row], deliveries: Sequence[Mapping[str, Any]]) -> list[_Answer]:
    """Answer for each event, in their order; what a concurrent claim won is asked once more."""
    answers = _ask(rows, deliveries)
    lost = [n for n, answer in enumerate(answers) if answer.verdict is None]
    if not lost:
        return answers
    again = _ask(
        [
            replace(rows[n], n=m, delivery_id=answers[n].delivery_id)
            for m, n in enumerate(lost, 1)
        ],
        (),
    )
    if any(answer.verdict is None for answer in again):
        raise TryAgain("another claim of this key came and went; ask again")
    for n, answer in zip(lost, again, strict=True):
        answers[n] = replace(answer, n=rows[n].n)
    return answers


def _ask(rows: Sequence[_Row], deliveries: Sequence[Mapping[str, Any]]) -> list[_Answer]:
    run = sql.rows if len(rows) <= FEW else sql.rows_planned_anew
    return run(
        "claim_events",
        _Answer,
        now=timezone.now(),
        events=_jsonb([_as_row(row) for row in rows]),
        bodies=[row.event.body for row in rows],
        deliveries=_jsonb(deliveries),
    )


def _deliveries(askings: Sequence[Asking]) -> list[dict[str, Any]]:
    return [
        vars(one.delivered)
        | {"d": d, "tenant_id": one.source.tenant_id, "source_id": one.source.pk}
        for d, one in enumerate(askings, 1)
        if one.delivered
    ]


def _ring(rows: Sequence[_Row], answers: Sequence[_Answer]) -> None:
    new = Counter(
        row.event.bell
        for row, answer in zip(rows, answers, strict=True)
        if answer.is_new and not row.event.buried
    )
    for queue, times in new.items():
        dispatch.ring_on_commit(queue, times, using=sql.database().alias)


def _fate(row: _Row, answer: _Answer) -> Fate:
    fate = Fate(
        answer.n,
        str(answer.verdict),
        answer.job_id,
        answer.state,
        answer.result,
        answer.claimant,
        answer.done_at,
    )
    if fate.verdict == Receipt.Verdict.ABSORBED and fate.claimant is None:
        return replace(fate, claimant=_claimant(row))
    return fate


def _claimant(row: _Row) -> str | None:
    """Name who claimed the operation at the same time: the claim itself could not see it."""
    doing = row.event.operation
    if doing is None:
        return None
    held = Operation.objects.filter(
        tenant_id=row.source.tenant_id,
        source_id=row.source.pk,
        operation_class=doing.operation_class,
        reference=doing.reference,
    )
    return held.values_list("key__key", flat=True).first()


def _as_row(row: _Row) -> dict[str, Any]:
    event = row.event
    doing = event.operation
    outcome, reason = event.buried or (None, None)
    return {
        "n": row.n,
        "d": row.d,
        "delivery_id": row.delivery_id,
        "tenant_id": row.source.tenant_id,
        "source_id": row.source.pk,
        "key": event.key,
        "kind": event.kind,
        "queue": event.queue,
        "downstream_key": event.downstream_key,
        "asked_by": event.asked_by,
        "operation_class": doing and doing.operation_class,
        "reference": doing and doing.reference,
        "amount_minor": doing and doing.amount_minor,
        "currency": doing and doing.currency,
        "exponent": doing and doing.exponent,
        "batch": doing and doing.batch,
        "occurred_at": (doing and doing.occurred_at) or event.occurred_at,
        "held": event.held,
        "unconfirmed": event.unconfirmed,
        "outcome": outcome,
        "reason": reason,
        "headers": dict(event.headers),
        "replayable": event.replayable,
    }


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=lambda v: json.dumps(v, default=str))
