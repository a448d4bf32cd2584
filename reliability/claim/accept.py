"""Layer 1: an event is taken in once, however often and in however many copies it comes."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from reliability import dispatch, sql
from reliability.errors import TryAgain
from reliability.handlers import MappedOperation
from reliability.models import Source

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
class _Fresh:
    n: int


def claim(
    source: Source, asked: Sequence[Asked], *, delivered: Delivered | None = None
) -> list[Fate]:
    """Claim each event's key and operation, queue its job, and record the receipts; all or none.

    Runs in one transaction (a savepoint inside the caller's). Bells ring after commit. Two events
    of one key in ``asked`` are one event. Raises ``TryAgain`` when somebody holds a key for longer
    than the lock timeout, or won a race that must be looked at again.
    """
    once = list({event.key: event for event in asked}.values())
    try:
        with transaction.atomic(using=sql.database().alias):
            return _claim(source, once, delivered, timezone.now())
    except IntegrityError as error:
        if "operation_belongs_to_its_key" not in str(error):
            raise
        raise TryAgain("another delivery of this key came first; ask again") from error
    except OperationalError as error:
        raise TryAgain("the database cannot take this event right now; ask again") from error


def _claim(
    source: Source, asked: Sequence[Asked], delivered: Delivered | None, now: datetime
) -> list[Fate]:
    scope: dict[str, Any] = {"tenant_id": source.tenant_id, "source_id": source.pk, "now": now}
    events = [_as_row(n, event) for n, event in enumerate(asked, 1)]
    bodies = [event.body for event in asked]
    fresh = {
        row.n
        for row in sql.rows(
            "claim_events", _Fresh, **scope, events=_jsonb(events), bodies=bodies
        )
    }
    for queue in {asked[n - 1].bell for n in fresh if not asked[n - 1].buried}:
        dispatch.ring_on_commit(queue, using=sql.database().alias)
    return sql.rows(
        "record_receipts",
        Fate,
        **scope,
        events=_jsonb([row | {"fresh": row["n"] in fresh} for row in events]),
        bodies=bodies,
        delivery=_jsonb(asdict(delivered)) if delivered else None,
    )


def _as_row(n: int, event: Asked) -> dict[str, Any]:
    doing = event.operation
    outcome, reason = event.buried or (None, None)
    return {
        "n": n,
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
