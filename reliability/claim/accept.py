"""Layer 1: an event is taken in once, however often and in however many copies it comes."""

import hashlib
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
from reliability.checks import too_short
from reliability.claim.signatures import key_error
from reliability.errors import KeyConflict, KeyNotAccepted, TryAgain
from reliability.handlers import REMEDIES, Kind, MappedOperation, find, lacks_sink
from reliability.models import Receipt, Source, Tenant

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
    asked_by: str = ""
    buried: tuple[Outcome, str] | None = None


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
    for queue in {asked[n - 1].queue for n in fresh if not asked[n - 1].buried}:
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
        "outcome": outcome,
        "reason": reason,
        "headers": dict(event.headers),
        "replayable": event.replayable,
    }


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=lambda v: json.dumps(v, default=str))


# Own jobs.


@dataclass(frozen=True)
class Accepted:
    job_id: uuid.UUID


@dataclass(frozen=True)
class Duplicate:
    """Somebody has this key already: the original's job, with its state and result so far."""

    job_id: uuid.UUID | None
    state: str | None
    result: Any


@dataclass(frozen=True)
class Absorbed:
    """The operation was claimed by another key: nothing is to be done."""

    claimant: str


def enqueue(
    kind: str,
    *,
    key: str,
    tenant: Tenant,
    payload: Any = None,
    asked_by: str = "",
) -> Accepted | Duplicate | Absorbed:
    """Take in one job of the host's own, inside the caller's transaction (outbox).

    ``key`` is unique per tenant and kind, 1-255 bytes. ``payload`` is anything JSON can say.
    Raises ``KeyNotAccepted`` for a kind that cannot keep the promise (no row exists then),
    ``KeyConflict`` where the key names another operation or amount, ``TryAgain`` after waiting
    2 s for a concurrent holder.
    """
    declared = _acceptable(kind, key)
    asked = Asked(
        key=key,
        kind=kind,
        body=_body(kind, payload),
        queue=declared.queue,
        downstream_key=key,
        operation=declared.operation(payload) if declared.operation else None,
        asked_by=asked_by,
    )
    source = _inside(tenant, kind)
    [fate] = claim(source, [asked])
    match fate.verdict:
        case Receipt.Verdict.ACCEPTED if fate.job_id:
            return Accepted(fate.job_id)
        case Receipt.Verdict.ABSORBED:
            return Absorbed(fate.claimant or "")
        case Receipt.Verdict.CONFLICT:
            raise KeyConflict(
                f"{key!r} was enqueued as {kind!r} before, with another operation or amount. "
                "The first stands; use another key for another job."
            )
        case _:
            return Duplicate(fate.job_id, fate.state, fate.result)


def _acceptable(kind: str, key: str) -> Kind:
    declared = find(kind)
    if declared is None:
        raise KeyNotAccepted(
            f"{kind!r} has no handler here; declare it with @handler({kind!r}, …)."
        )
    if lacks_sink(declared):
        raise KeyNotAccepted(f"{kind!r} has retries and no sink: {REMEDIES}.")
    if why := too_short(declared):
        raise KeyNotAccepted(why)
    if wrong := key_error(key):
        raise KeyNotAccepted(f"The key of this {kind!r} job is {wrong}.")
    return declared


def _body(kind: str, payload: Any) -> bytes:
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise KeyNotAccepted(
            f"The payload of this {kind!r} job is not JSON: {error}."
        ) from error


def _inside(tenant: Tenant, kind: str) -> Source:
    """Return the internal source whose keys are this tenant's jobs of this kind."""
    digest = hashlib.sha256(kind.encode()).hexdigest()[:12]
    slug = f"own:{kind}" if len(kind) < 100 else f"own:{kind[:80]}:{digest}"  # noqa: PLR2004
    source, _ = Source.objects.get_or_create(
        tenant=tenant, slug=slug, defaults={"internal": True}
    )
    return source
