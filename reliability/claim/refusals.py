"""Count what the door turns away, without letting a stranger write a row per request."""

import hashlib
import logging
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Timer

from django.db import DatabaseError
from django.utils import timezone

from reliability import sql
from reliability.models import Source

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
WAITING_MAX = 500


@dataclass
class Tally:
    tenant_id: int
    source_id: int
    reason: str
    hour: datetime
    count: int = 0
    last_at: datetime = field(default_factory=timezone.now)
    last_size_bytes: int = 0
    last_sha256: bytes = b""
    last_peer: str | None = None


@dataclass(frozen=True)
class _Counted:
    id: int


_waiting: dict[tuple[int, str, datetime], Tally] = {}
_lock = Lock()


def count(source: Source, reason: str, *, body: bytes, peer: str | None) -> None:
    """Count one refused request. Written within a second, together with those that follow."""
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    with _lock:
        first = not _waiting
        if len(_waiting) >= WAITING_MAX:
            return
        tally = _waiting.setdefault(
            (source.pk, reason, hour), Tally(source.tenant_id, source.pk, reason, hour)
        )
        tally.count += 1
        tally.last_at, tally.last_size_bytes = now, len(body)
        tally.last_sha256, tally.last_peer = hashlib.sha256(body).digest(), peer
    if first:
        timer = Timer(FLUSH_SECONDS, _flush_and_close)
        timer.daemon = True
        timer.start()


def flush() -> None:
    """Write the waiting counts now."""
    with _lock:
        tallies = list(_waiting.values())
        _waiting.clear()
    for tally in tallies:
        try:
            sql.rows("count_refusals", _Counted, **vars(tally))
        except DatabaseError:
            logger.warning("refusals_not_counted", extra={"count": tally.count})


def forget() -> None:
    """Drop the waiting counts. For tests, whose rows are rolled back."""
    _waiting.clear()


def _flush_and_close() -> None:
    try:
        flush()
    finally:
        sql.database().close()
