"""Faults that are no kills: servers that go away, a worker that stands still, bad answers."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import redis
from django.db import connection, connections

from reliability.conf import conf
from reliability.embedded.servers import Servers, running_addresses
from reliability.proof.faults import Aim
from reliability.proof.plan import Fault, Strike
from reliability.proof.sink_process import Sink

AWAY_SECONDS = 0.5
ANSWERS_SECONDS, ANSWERS_SECONDS_MAX = 2.0, 15.0
"""How long after the first bad answer they go on, and how long a first one is waited for."""
LOOK_SECONDS = 0.1
BAD = ("429", "500")
RATES = {"throttle_rate": 0.1, "error_rate": 0.1, "time_out_after_accepting": 0.1}
"""Low enough that eight attempts are enough for every job."""
SURE = {"throttle_rate": 1.0}
"""Until the first bad answer was seen: among few requests a chance of one in ten may hit none."""
PAST_LEASE_SECONDS = 1.5
AWAKE_SECONDS = 1.0
"""A worker that was stopped amid an effect has had it by then."""
TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE usename = current_user AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, kw_only=True)
class Struck:
    """What one fault did, in words, and the jobs that it hit where that can be told."""

    strike: Strike
    did: str
    hit: list[dict[str, str]] = field(default_factory=list)
    second: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        return asdict(self)


class Striker:
    """Brings a run's faults about, one at a time, on its throw-away servers."""

    def __init__(self, folder: Path, *, sink: Sink, aim: Aim) -> None:
        self._folder, self._sink, self._aim = folder, sink, aim
        self._began = time.monotonic()
        self._hit: list[dict[str, str]] = []

    def strike(self, strike: Strike) -> Struck:
        """Carry one out and undo it; returns when the part it struck is up again."""
        acts: Mapping[Fault, Callable[[], str]] = {
            Fault.BROKER: self._broker,
            Fault.POSTGRES: self._postgres,
            Fault.BACKEND: self._backend,
            Fault.SIGSTOP: self._sigstop,
            Fault.ANSWERS: self._answers,
        }
        self._hit = []
        second = round(time.monotonic() - self._began, 2)
        did = acts[strike.fault]()
        return Struck(strike=strike, did=did, hit=self._hit, second=second)

    def _broker(self) -> str:
        addresses = running_addresses(self._folder)
        if addresses is None:
            return ""
        with redis.Redis.from_url(addresses.broker_url, socket_timeout=5) as client:
            client.flushall()
        self._restart("valkey")
        return "every bell was flushed and the broker restarted"

    def _postgres(self) -> str:
        self._restart("postgres")
        connections.close_all()  # they were to the server that is gone
        return "PostgreSQL was restarted"

    def _restart(self, name: str) -> None:
        servers = Servers(self._folder)
        servers.halt(name)
        time.sleep(AWAY_SECONDS)
        servers.resume(name)

    def _backend(self) -> str:
        with connection.cursor() as cursor:
            cursor.execute(TERMINATE)
            [(ended,)] = cursor.fetchall()
        return f"{ended} database sessions were ended"

    def _sigstop(self) -> str:
        found = self._aim.busy()
        if found is None:
            return ""
        pid, self._hit = found
        seconds = conf().lease.total_seconds() + PAST_LEASE_SECONDS
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
        except ProcessLookupError:
            return ""
        finally:
            _go_on(pid)
        time.sleep(AWAKE_SECONDS)
        return f"a worker stood still for {seconds:.1f} s and went on"

    def _answers(self) -> str:
        before, until = self._bad(), time.monotonic() + ANSWERS_SECONDS_MAX
        self._sink.control(**SURE)
        while self._bad() == before and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        self._sink.control(**RATES)
        time.sleep(ANSWERS_SECONDS)
        self._sink.control(**dict.fromkeys(RATES, 0.0))
        return f"the provider said {self._bad() - before} times 429 or 500, and lost answers"

    def _bad(self) -> int:
        statuses = self._sink.counts()["by_status"]
        return sum(statuses.get(status, 0) for status in BAD)


def _go_on(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
