"""Claim, do and complete in one call, for code that is not a handler."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.claim.accept import Asked, Fate, claim
from reliability.claim.enqueue import Duplicate, internal_source
from reliability.claim.signatures import key_error
from reliability.errors import KeyNotAccepted
from reliability.handlers import Kind
from reliability.models import Receipt, Tenant
from reliability.policy import RunOnce
from reliability.work.lease import Leased, take_inline
from reliability.work.settle import Done, Failed, fail, finish, finish_late

logger = logging.getLogger(__name__)

KIND = "once"
ACCEPTED = Receipt.Verdict.ACCEPTED


@dataclass(frozen=True)
class Did:
    """It was done now, by this call; ``result`` is what ``do`` returned."""

    job_id: UUID
    result: Any


def once(
    key: str, do: Callable[[str], Any], *, tenant: Tenant | str, kind: str = KIND
) -> Did | Duplicate:
    """Do something once per tenant, kind and key: the claim commits first, then ``do`` runs.

    ``do`` is called with the key to send downstream, outside of any transaction of ours. What it
    raises reaches the caller and is a dead letter; should the process die in it, the sweep finds
    the claim and makes it a letter of unknown outcome. Neither is repeated unless a person asks,
    for which ``kind`` must have a handler. Raises ``RuntimeError`` inside a transaction, whose
    rollback would forget the claim, and ``KeyNotAccepted`` for a bad key.
    """
    if wrong := key_error(key):
        raise KeyNotAccepted(f"The key of this {kind!r} job is {wrong}.")
    with transaction.atomic(using=sql.database().alias, durable=True):
        fate = _claim(key, tenant, kind)
        leased = take_inline(fate.job_id) if fate.verdict == ACCEPTED and fate.job_id else None
    if leased is None or fate.job_id is None:
        return Duplicate(fate.job_id, fate.state, fate.result, fate.done_at)
    return Did(fate.job_id, _do(leased, key, do))


def _claim(key: str, tenant: Tenant | str, kind: str) -> Fate:
    asked = Asked(key=key, kind=kind, body=b"", queue="outside", downstream_key=key)
    return claim(internal_source(tenant, kind), [asked])[0]


def _do(job: Leased, key: str, do: Callable[[str], Any]) -> Any:
    started_at = timezone.now()
    kind = Kind(name=job.kind, handle=lambda _: None, sink=None, policy=RunOnce())
    try:
        result = do(key)
    except Exception as error:
        fail(Failed(job, kind, error, started_at, in_doubt=True))
        raise
    done = Done(job, result, started_at)
    if not finish([done]) and not finish_late(done):
        logger.warning("result_came_too_late", extra={"job": job.id})
    return result
