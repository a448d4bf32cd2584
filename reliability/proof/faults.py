"""Kill workers at random moments or at named points, and write down what each kill hit."""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reliability.killing import Point, obeyed, order, withdraw
from reliability.models import Job
from reliability.proof.cast import KINDS, Effect
from reliability.proof.plan import Kill, Moment
from reliability.proof.sink_process import Sink
from reliability.proof.timeline import Timeline

__all__ = ["Aim", "Group", "Kill", "Killed", "Killer"]

LAND_SECONDS = 0.15
"""What was under way at the sink and in the database has ended by then."""
FIT_SECONDS, FIND_SECONDS = 5.0, 90.0
"""How long a fitting target is waited for, and how long any: groups that were killed come back."""
POINT_SECONDS = 8.0
"""A sweep comes by within a lease, a pass and a little."""
JOB_SECONDS = 0.4
"""About a job's life at the sink's latency: a kill comes at a random moment of it."""
LOOK_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Group:
    """A worker group as it runs now: its parent and its pool."""

    name: str
    parent: int
    pool: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What one kill hit: the jobs that were running there, each with where it was.

    ``point`` is the named one at which the process ended; ``second`` counts from the run's start.
    """

    kill: Kill
    target: str
    pids: Sequence[int]
    hit: Sequence[dict[str, str]] = field(default_factory=tuple)
    point: str = ""
    second: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        return asdict(self)


class Aim:
    """Finds what each kill is to hit, and kills it; ``folder`` is where points look for orders.

    Without one, a kill at a point comes while jobs run.
    """

    def __init__(
        self,
        *,
        groups: Callable[[], Sequence[Group]],
        sink: Sink,
        seed: int,
        folder: Path | None = None,
    ) -> None:
        self._folder, self._groups, self._sink = folder, groups, sink
        self._lots = random.Random(f"{seed} targets")
        self._began = time.monotonic()

    def kill(self, kill: Kill) -> Killed:
        """Carry it out: at its point where a process reaches that in time, else as any other."""
        if kill.point and (pid := self._ordered(Point(kill.point))):
            hit = self._hit((pid,))
            return self._killed(kill, f"process {pid}", (pid,), hit=hit, point=kill.point)
        target = self._target("busy" if kill.point else kill.moment)
        if target is None:
            return self._killed(kill, "no group was up", ())
        group, child = target
        if kill.moment == "busy":
            time.sleep(self._lots.uniform(0, JOB_SECONDS))
        with suppress(ProcessLookupError):
            if kill.whole_group:
                os.killpg(group.parent, signal.SIGKILL)
            else:
                os.kill(child, signal.SIGKILL)
        pids = (group.parent, *group.pool) if kill.whole_group else (child,)
        name = f"group {group.name}" if kill.whole_group else f"pool child of {group.name}"
        return self._killed(kill, name, pids, hit=self._hit(pids))

    def busy(self) -> tuple[int, list[dict[str, str]]] | None:
        """Choose a pool child that works, and say what; ``None`` where no group is up."""
        target = self._target("busy")
        return (target[1], self._jobs((target[1],))) if target else None

    def _killed(self, kill: Kill, target: str, pids: Sequence[int], **found: Any) -> Killed:
        second = round(time.monotonic() - self._began, 2)
        return Killed(kill=kill, target=target, pids=pids, second=second, **found)

    def _ordered(self, point: Point) -> int | None:
        """Order a death at the point and wait for it; ``None`` where nothing came there in time."""
        if self._folder is None:
            return None
        order(self._folder, point)
        until = time.monotonic() + POINT_SECONDS
        while time.monotonic() < until:
            if pid := obeyed(self._folder, point):
                return pid
            time.sleep(LOOK_SECONDS)
        return None if withdraw(self._folder, point) else obeyed(self._folder, point)

    def _target(self, moment: Moment) -> tuple[Group, int] | None:
        """Choose a group that is up and a child of it: a fitting one where there is any in time."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < FIND_SECONDS:
            up = [(group, pid) for group in self._groups() for pid in group.pool]
            wanted: Moment = "any" if waited > FIT_SECONDS else moment
            fitting = self._fitting([pid for _, pid in up], wanted)
            if found := [(group, pid) for group, pid in up if pid in fitting]:
                return self._lots.choice(found)
            time.sleep(LOOK_SECONDS)
        return None

    def _fitting(self, pids: Sequence[int], moment: Moment) -> set[int]:
        if moment == "any":
            return set(pids)
        running = _running_in(pids)
        if moment == "effect":
            counted = self._sink.counts(by_key=True)["by_key"]
            running = [job for job in running if _effects(counted, job)]
        return {_pid(job) for job in running}

    def _hit(self, pids: Sequence[int]) -> list[dict[str, str]]:
        time.sleep(LAND_SECONDS)
        return self._jobs(pids)

    def _jobs(self, pids: Sequence[int]) -> list[dict[str, str]]:
        return [self._told(job) for job in _running_in(pids)]

    def _told(self, job: Job) -> dict[str, str]:
        """Say where the job was: the sink knows whether its effect had happened."""
        kind = KINDS.get(job.kind)
        if kind is None or kind.effect is not Effect.HTTP:
            where = "mail begun" if job.intent_at else "before its effect"
        elif self._sink.effects_under(job.key.downstream_key):
            where = "between effect and completion"
        else:
            where = "before its effect"
        return {"kind": job.kind, "key": job.key.key, "where": where}


class Killer(Timeline[Kill, Killed]):
    """Carries out kills, and nothing else, while deliveries are sent."""

    def __init__(
        self,
        kills: Sequence[Kill],
        *,
        groups: Callable[[], Sequence[Group]],
        sink: Sink,
        seed: int,
    ) -> None:
        super().__init__(kills, Aim(groups=groups, sink=sink, seed=seed).kill)


def _running_in(pids: Sequence[int]) -> list[Job]:
    """List the jobs these processes have leased."""
    running = Job.objects.filter(state=Job.State.RUNNING).select_related("key")
    return [job for job in running if _pid(job) in pids]


def _pid(job: Job) -> int:
    """Read who works it: a worker's name is host:pid:mark."""
    return int(job.worker.split(":")[1])


def _effects(counted: Any, job: Job) -> int:
    return int(counted.get(job.key.downstream_key, {"effects": 0})["effects"])
