"""The right to work a job for a while; every write after it must show its token."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from reliability import sql
from reliability.conf import conf
from reliability.handlers import DownstreamKey, Event, kinds
from reliability.killing import Point, reach
from reliability.models import Job
from reliability.work.destinations import barred


@dataclass(frozen=True, kw_only=True)
class Leased:
    """One start of one job, as it was claimed."""

    id: int
    token: int
    alone: bool
    tenant_id: int
    source_id: int
    key_id: int
    kind: str
    round: int
    starts: int
    crashes: int
    releases: int
    round_starts: int
    round_crashes: int
    round_releases: int
    started_at: datetime
    lease_expires_at: datetime
    taken: float = field(default_factory=time.monotonic, init=False)
    """When it was taken, on this machine's steady clock: how its wall clock runs is no matter."""

    @property
    def left(self) -> timedelta:
        """How long the lease still holds; its length is the database's, the time gone by ours."""
        gone = timedelta(seconds=time.monotonic() - self.taken)
        return self.lease_expires_at - self.started_at - gone

    @property
    def failures(self) -> int:
        """Failures of this round before this start: what is neither crash nor release."""
        starts = self.starts - 1 - self.round_starts
        lost = self.crashes - self.round_crashes
        return starts - lost - (self.releases - self.round_releases)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a handler is given, as stored. ``raw`` is ``None`` once the body was purged."""

    id: int
    tenant: str
    source: str
    internal: bool
    key: str
    downstream_key: str
    occurred_at: datetime | None
    asked_by: str
    raw: bytes | None
    headers: Mapping[str, str]
    unconfirmed: bool


@dataclass(frozen=True)
class JobId:
    id: int


@cache
def _worker(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{uuid4().hex[:8]}"


def worker() -> str:
    """Name this process: host, pid and a mark of its own, so that a reused pid is another."""
    return _worker(os.getpid())


def take(queue: str, *, limit: int) -> list[Leased]:
    """Lease up to ``limit`` due jobs, in a transaction of its own; ``[]`` when there are none."""
    without = barred() if queue == "outside" else []
    leased = sql.rows("claim_jobs", Leased, limit=limit, without=without, **_terms(queue))
    if leased:
        reach(Point.LEASED)
    return leased


def take_alone(queue: str) -> Leased | None:
    """Lease one job whose worker was lost before, to run with no neighbours."""
    found = sql.rows("claim_job_alone", Leased, **_terms(queue))
    if found:
        reach(Point.LEASED)
    return found[0] if found else None


def held(job: Job) -> Leased:
    """Describe the last start of a job as it was leased, for a report that comes from outside."""
    names = [one.name for one in fields(Leased) if one.init]
    facts = {name: getattr(job, name) for name in names}
    return Leased(**facts)


def take_inline(public_id: UUID) -> Leased | None:
    """Lease the job claimed in this transaction, for a caller who does it at once."""
    found = sql.rows(
        "claim_job_inline", Leased, public_id=public_id, worker=worker(), lease=conf().lease
    )
    return found[0] if found else None


def _terms(queue: str) -> dict[str, Any]:
    windows = {kind.name: kind.window.total_seconds() for kind in kinds() if kind.window}
    return {
        "queue": queue,
        "worker": worker(),
        "lease": conf().lease,
        "windows": Jsonb(windows),
    }


@dataclass(frozen=True)
class Read:
    """A leased job's event, and what stands against working it."""

    event: Event
    own_job: bool
    unconfirmed: bool
    """Its provider has yet to confirm it."""
    erased: bool
    """Its body was taken away: there is nothing left to work on."""


def events(leased: Sequence[Leased]) -> Mapping[int, Read]:
    """Read the events of leased jobs, by job id."""
    by_id = {job.id: job for job in leased}
    loaded = sql.rows("load_events", Loaded, ids=list(by_id))
    return {
        row.id: Read(
            event=_event(row, kind=by_id[row.id].kind, failures=by_id[row.id].failures,
                         round_=by_id[row.id].round),
            own_job=row.internal,
            unconfirmed=row.unconfirmed,
            erased=row.raw is None,
        )
        for row in loaded
    }  # fmt: skip


def event_of(job: Job) -> Event:
    """Read the event of a job that nobody is working, as ``verify`` is asked about it."""
    [row] = sql.rows("load_events", Loaded, ids=[job.pk])
    return _event(row, kind=job.kind, failures=0, round_=job.round)


def _event(row: Loaded, *, kind: str, failures: int, round_: int) -> Event:
    return Event(
        tenant=row.tenant,
        source=row.source,
        key=row.key,
        kind=kind,
        body=bytes(row.raw or b""),
        downstream_key=DownstreamKey(row.downstream_key),
        headers=row.headers,
        occurred_at=row.occurred_at,
        asked_by=row.asked_by,
        failures=failures,
        round=round_,
    )
