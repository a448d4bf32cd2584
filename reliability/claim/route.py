"""Which kind of work an authenticated event is, and which operation it tells of."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from uuid import uuid4

from reliability.claim.accept import Asked, Outcome
from reliability.claim.body import Unparseable, load
from reliability.claim.door import Door
from reliability.claim.presets import map_operation
from reliability.claim.signatures import Found, Identity, Unreadable
from reliability.conf import conf
from reliability.handlers import MappedOperation, find
from reliability.models import Body, Job
from reliability.outbound.senders import TEST_TYPE

KEPT_HEADERS = frozenset(
    {
        *("content-type", "user-agent", "x-github-event", "x-github-delivery"),
        *("x-shopify-topic", "x-shopify-shop-domain"),
    }
)
HEADER_BYTES_MAX = 500


def route(
    entry: Door,
    found: Found,
    *,
    body: bytes,
    headers: Mapping[str, str],
    now: datetime,
) -> list[Asked]:
    """Turn what a delivery carries into events that ask to be taken in.

    Nothing authenticated is turned away: what cannot be read, named or routed is taken in as a
    dead letter, its bytes kept. Signature headers, cookies and credentials are not kept.
    """
    kept = {
        name.lower(): value[:HEADER_BYTES_MAX]
        for name, value in headers.items()
        if name.lower() in KEPT_HEADERS
    }
    return [
        _nameless(entry, one, body, kept)
        if isinstance(one, Unreadable)
        else _event(entry, one, body, kept, now)
        for one in ([found] if isinstance(found, Unreadable) else found)
    ]


def _nameless(entry: Door, why: Unreadable, whole: bytes, headers: dict[str, str]) -> Asked:
    return Asked(
        key=f"delivery:{uuid4()}",
        kind=entry.scheme.name,
        body=whole if why.payload is None else why.payload,
        headers=headers,
        buried=("unparseable", why.reason),
    )


def _event(
    entry: Door, identity: Identity, whole: bytes, headers: dict[str, str], now: datetime
) -> Asked:
    body = whole if identity.payload is None else identity.payload
    routed = entry.source.routes.get(identity.event_type) or _built_in(entry, identity)
    kind = routed or f"{entry.scheme.name}.{identity.event_type}".rstrip(".")
    declared = find(kind)
    buried: tuple[Outcome, str] | None = None
    operation: MappedOperation | None = None
    try:
        operation = map_operation(entry.operations, identity.event_type, load(body))
    except Unparseable as error:
        buried = ("unparseable", error.reason)
    else:
        buried = _unwanted(entry, identity, known=bool(declared or routed), now=now)
        buried = buried or _replayed(entry, identity, body)
    return Asked(
        key=identity.key,
        kind=kind,
        body=body,
        queue=declared.queue if declared else "outside",
        operation=operation,
        occurred_at=identity.occurred_at,
        headers=headers,
        replayable=not entry.scheme.identity_is_signed(entry.source.options),
        held=_hold(entry, known=declared is not None) if buried is None else "",
        unconfirmed=not entry.scheme.body_is_bound,
        buried=buried,
    )


def _built_in(entry: Door, identity: Identity) -> str | None:
    """Return a built-in handler's kind: the source has a destination, or it is a test event."""
    if entry.source.destination_id:
        return "forward"
    return TEST_TYPE if identity.event_type == TEST_TYPE else None


def _unwanted(
    entry: Door, identity: Identity, *, known: bool, now: datetime
) -> tuple[Outcome, str] | None:
    """Say why an event with a name is dead at the door, or ``None``."""
    if not known:
        what = identity.event_type or "an event without a type"
        return ("unroutable", f"no handler and no route for {what} from {entry.source.slug}")
    if identity.occurred_at and identity.occurred_at < now - conf().retention:
        return ("expired", f"too old to judge: it is older than {conf().retention.days} days")
    return None


def _replayed(entry: Door, identity: Identity, body: bytes) -> tuple[Outcome, str] | None:
    """Say that an equal body came under another unsigned id, where the source holds such."""
    if not entry.source.hold_replays or entry.scheme.identity_is_signed(entry.source.options):
        return None
    twins = Body.objects.filter(
        sha256=hashlib.sha256(body).digest(), replayable=True, key__source=entry.source
    ).exclude(key__key=identity.key)
    return (
        ("suspect", "an equal body came under another id before") if twins.exists() else None
    )


def _hold(entry: Door, *, known: bool) -> str:
    if not entry.scheme.body_is_bound:
        return Job.Hold.UNCONFIRMED
    if entry.source.paused_at:
        return Job.Hold.PAUSED
    return Job.Hold.NONE if known else Job.Hold.KIND_UNKNOWN
