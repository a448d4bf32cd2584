"""One job, one killed worker group, the shipped times: how the sweep keeps its promise."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.utils import timezone

from reliability import enqueue
from reliability.conf import conf
from reliability.management.stage import Stage, Wishes, stage
from reliability.models import Job, Run, Tenant
from reliability.proof.handlers import UNTIL

PASSES_MIN = 4
PASS_TOLERANCE_SECONDS = 5.0
GIVE_UP_SECONDS = 900


@dataclass(frozen=True)
class Seen:
    """What was seen: seconds from the kill to the next start, and between passes by beat."""

    rescue_seconds: float
    promised_seconds: float
    pass_gaps_seconds: list[float]
    every_seconds: float
    starts: int
    crashes: int
    state: str

    @property
    def ok(self) -> bool:
        """Tell whether both promises were kept, and the job took effect after one crash."""
        on_time = [
            abs(gap - self.every_seconds) <= PASS_TOLERANCE_SECONDS
            for gap in self.pass_gaps_seconds
        ]
        return (
            self.rescue_seconds <= self.promised_seconds
            and len(on_time) >= PASSES_MIN - 1
            and all(on_time)
            and (self.state, self.starts, self.crashes) == ("done", 2, 1)
        )

    def facts(self) -> dict[str, Any]:
        """Return everything seen with the verdict, for JSON."""
        return asdict(self) | {"ok": self.ok}

    def words(self) -> str:
        """Return the verdict in two lines."""
        gaps = ", ".join(f"{gap:.1f}" for gap in self.pass_gaps_seconds)
        return (
            f"{'PASS' if self.ok else 'FAIL'}: started again {self.rescue_seconds:.0f} s after "
            f"its worker was killed (promised: {self.promised_seconds:.0f} s); "
            f"{self.state} after {self.starts} starts, {self.crashes} crash.\n"
            f"Passes of the sweep by beat came {gaps} s apart (promised: "
            f"{self.every_seconds:.0f} s).\n"
        )


def watch(folder: Path) -> Seen:
    """Play it: needs the servers of ``folder`` and the story's handlers. Takes about 9 minutes."""
    with stage(folder, Wishes(seed=1, latency_ms=0.0)) as played:
        tenant = Tenant.objects.get(slug="acme")
        until = time.time() + 60
        enqueue(UNTIL, key="held", tenant=tenant, payload={"until": until})
        job = Job.objects.get(kind=UNTIL)
        _wait(lambda: _fresh(job).state == Job.State.RUNNING, seconds=60)
        killed_at = _kill_groups(played)
        _wait(lambda: _fresh(job).state == Job.State.DONE, seconds=GIVE_UP_SECONDS)
        _wait(lambda: len(_passes()) >= PASSES_MIN, seconds=GIVE_UP_SECONDS)
        return _seen(_fresh(job), killed_at)


def _kill_groups(played: Stage) -> datetime:
    """SIGKILL every worker group: whoever holds the job is lost with its parent."""
    at = timezone.now()
    for group in played.groups():
        os.killpg(group.parent, signal.SIGKILL)
    return at


def _seen(job: Job, killed_at: datetime) -> Seen:
    second = job.attempts.order_by("-number")[0]
    passes = _passes()
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(passes)]
    return Seen(
        rescue_seconds=(second.started_at - killed_at).total_seconds(),
        promised_seconds=conf().rescue_max.total_seconds(),
        pass_gaps_seconds=gaps,
        every_seconds=conf().sweep_every.total_seconds(),
        starts=job.starts,
        crashes=job.crashes,
        state=job.state,
    )


def _passes() -> list[datetime]:
    by_beat = Run.objects.filter(job="sweep", trigger=Run.Trigger.BEAT, ok=True)
    return list(by_beat.order_by("started_at").values_list("started_at", flat=True))


def _fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def _wait(true: Callable[[], bool], *, seconds: float) -> None:
    until = timezone.now() + timedelta(seconds=seconds)
    while not true():
        if timezone.now() > until:
            raise TimeoutError(f"nothing came of it within {seconds:.0f} s")
        time.sleep(0.5)
