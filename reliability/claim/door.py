"""What the door knows of a source, kept for a few seconds so that a flood costs no look-ups."""

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock

from django.utils import timezone

from reliability import sql
from reliability.claim.operations import OperationRule, read_rules
from reliability.claim.presets import PRESETS, Acknowledgement
from reliability.claim.signatures import SCHEMES, Scheme
from reliability.errors import TryAgain
from reliability.models import Source, SourceSecret

logger = logging.getLogger(__name__)

KEPT_SECONDS = 5.0
KEPT_MAX = 1_000
# What a token is made of; a path may hold anything, also what PostgreSQL takes for no text.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Door:
    """One source as a delivery meets it. ``secrets`` are (id, text), newest first."""

    source: Source
    scheme: Scheme
    secrets: Sequence[tuple[int, str]]
    operations: Sequence[OperationRule]
    acknowledgement: Acknowledgement
    body_bytes_max: int


_kept: dict[str, tuple[float, Door]] = {}
_lock = Lock()


def door(token: str) -> Door | None:
    """Return the door behind an endpoint token, or ``None`` where there is none.

    A changed source or secret is seen after at most 5 seconds.
    """
    backstop()
    if not _TOKEN.fullmatch(token):
        return None
    kept = _kept.get(token)
    if kept and kept[0] > time.monotonic():
        return kept[1]
    found = _look(token)
    with _lock:
        if len(_kept) >= KEPT_MAX:
            _kept.clear()
        if found:
            _kept[token] = (time.monotonic() + KEPT_SECONDS, found)
        else:
            _kept.pop(token, None)
    return found


@dataclass(frozen=True)
class _Backstop:
    stands: bool


@cache
def backstop() -> bool:
    """Tell once per process whether the constraint that makes a claim a claim stands.

    Raises ``TryAgain`` while it does not: an open door would let duplicates in.
    """
    if not sql.rows("backstop", _Backstop)[0].stands:
        logger.error("claim_constraint_missing")
        raise TryAgain("the constraint one_claim_per_key is missing or invalid: run migrate")
    return True


def forget() -> None:
    """Look every source up again. For tests, and after a secret was revoked here."""
    _kept.clear()


def _look(token: str) -> Door | None:
    source = Source.objects.filter(endpoint_token=token, internal=False).first()
    if source is None or source.scheme not in SCHEMES:
        return None
    secrets = SourceSecret.objects.valid(timezone.now()).filter(source=source)
    preset = PRESETS.get(source.preset) or PRESETS[source.scheme]
    return Door(
        source=source,
        scheme=SCHEMES[source.scheme],
        secrets=[(secret.pk, secret.open()) for secret in secrets],
        operations=[*_own_rules(source), *preset.operations],
        acknowledgement=preset.acknowledgement,
        body_bytes_max=source.body_bytes_max or preset.body_bytes_max,
    )


def _own_rules(source: Source) -> Sequence[OperationRule]:
    """Read the source's own rules; without them one operation could be claimed twice."""
    try:
        return read_rules(source.operation_rules)
    except ValueError as error:
        logger.exception("operation_rules_unreadable", extra={"source": source.pk})
        raise TryAgain(f"{source.slug}: {error}") from None
