"""The host's own jobs: claimed like events, inside the caller's transaction."""

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reliability import sql
from reliability.checks import too_short
from reliability.claim.accept import Asked, Fate, claim
from reliability.claim.signatures import key_error
from reliability.conf import conf
from reliability.errors import KeyConflict, KeyNotAccepted
from reliability.handlers import REMEDIES, Kind, find, lacks_sink
from reliability.models import Receipt, Source, Tenant

SLUG_MAX = 100


@dataclass(frozen=True)
class Accepted:
    job_id: uuid.UUID


@dataclass(frozen=True)
class Duplicate:
    """Somebody has this key already: the original's job, with its state and result so far.

    A job done longer ago than ``conf().retention`` left no result, but ``done_at``.
    """

    job_id: uuid.UUID | None
    state: str | None
    result: Any
    done_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Absorbed:
    """The operation was claimed by another key: nothing is to be done."""

    claimant: str


Taken = Accepted | Duplicate | Absorbed


def enqueue(
    kind: str, *, key: str, tenant: Tenant | str, payload: Any = None, asked_by: str = ""
) -> Taken:
    """Take in one job of the host's own, inside the caller's transaction (outbox).

    ``key`` is unique per tenant and kind, 1-255 bytes. ``tenant`` is one or its slug. ``payload``
    is anything JSON can say. Raises ``KeyNotAccepted`` for a kind that cannot keep the promise (no
    row exists then), ``KeyConflict`` where the key names another operation or amount, ``TryAgain``
    after waiting 2 s for a concurrent holder.
    """
    return enqueue_many(kind, [(key, payload)], tenant=tenant, asked_by=asked_by)[0]


def enqueue_many(
    kind: str, items: Iterable[tuple[str, Any]], *, tenant: Tenant | str, asked_by: str = ""
) -> list[Taken]:
    """Take in many jobs of one kind, (key, payload) each, in one statement: all or none.

    At most ``conf().enqueue_max`` at a time. Answers in the order of ``items``; two items of one
    key are one job. Raises what ``enqueue`` raises; ``KeyConflict`` names the first such key.
    """
    wanted = list(items)
    if len(wanted) > conf().enqueue_max:
        raise KeyNotAccepted(
            f"At most {conf().enqueue_max} jobs at a time, not {len(wanted)}."
        )
    declared = _acceptable(kind)
    asked = {key: _asked(declared, key, payload, asked_by) for key, payload in wanted}
    fates = claim(internal_source(tenant, kind), list(asked.values())) if asked else []
    taken = dict(zip(asked, map(_taken, fates), strict=True))
    if conflict := next((key for key, answer in taken.items() if answer is None), None):
        raise KeyConflict(
            f"{conflict!r} was enqueued as {kind!r} before, with another operation or amount. "
            "The first stands; use another key for another job."
        )
    return [answer for key, _ in wanted if (answer := taken[key])]


def _asked(declared: Kind, key: str, payload: Any, asked_by: str) -> Asked:
    if wrong := key_error(key):
        raise KeyNotAccepted(f"The key of this {declared.name!r} job is {wrong}.")
    return Asked(
        key=key,
        kind=declared.name,
        body=_body(declared.name, payload),
        queue=declared.queue,
        downstream_key=key,
        operation=declared.operation(payload) if declared.operation else None,
        asked_by=asked_by,
    )


def _taken(fate: Fate) -> Taken | None:
    """Name what became of an own job; ``None`` for a conflict."""
    match fate.verdict:
        case Receipt.Verdict.ACCEPTED if fate.job_id:
            return Accepted(fate.job_id)
        case Receipt.Verdict.ABSORBED:
            return Absorbed(fate.claimant or "")
        case Receipt.Verdict.CONFLICT:
            return None
        case _:
            return Duplicate(fate.job_id, fate.state, fate.result, fate.done_at)


def _acceptable(kind: str) -> Kind:
    declared = find(kind)
    if declared is None:
        raise KeyNotAccepted(
            f"{kind!r} has no handler here; declare it with @handler({kind!r}, …)."
        )
    if lacks_sink(declared):
        raise KeyNotAccepted(f"{kind!r} has retries and no sink: {REMEDIES}.")
    if why := too_short(declared):
        raise KeyNotAccepted(why)
    return declared


def _body(kind: str, payload: Any) -> bytes:
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise KeyNotAccepted(
            f"The payload of this {kind!r} job is not JSON: {error}."
        ) from error


@dataclass(frozen=True)
class OwnSource:
    """The source of a tenant's own jobs of one kind, as far as a claim needs it."""

    pk: int
    tenant_id: int


def internal_source(tenant: Tenant | str, kind: str) -> OwnSource:
    """Return the internal source whose keys are this tenant's jobs of this kind."""
    digest = hashlib.sha256(kind.encode()).hexdigest()[:12]
    slug = f"own:{kind}" if len(kind) < SLUG_MAX else f"own:{kind[:80]}:{digest}"
    by_id, by_name = (None, tenant) if isinstance(tenant, str) else (tenant.pk, None)
    there = sql.rows("find_own_source", OwnSource, tenant_id=by_id, tenant=by_name, slug=slug)
    return there[0] if there else _made(tenant, slug)


def _made(tenant: Tenant | str, slug: str) -> OwnSource:
    owner = tenant if isinstance(tenant, Tenant) else _named(tenant)
    source, _ = Source.objects.get_or_create(
        tenant=owner, slug=slug, defaults={"internal": True}
    )
    return OwnSource(source.pk, source.tenant_id)


def _named(slug: str) -> Tenant:
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        raise KeyNotAccepted(f"There is no tenant {slug!r}; add it with: manage.py tenant.")
    return found
