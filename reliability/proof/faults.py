"""Kill workers at random moments that a seed repeats, and write down what each kill hit."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

from django.db import connections

from reliability.models import Job
from reliability.proof.cast import KINDS, Effect
from reliability.proof.sink_process import Sink

Moment = Literal["any", "busy", "effect"]
GROUPS_PER_HUNDRED = 20
FIRST_REPLAY_PER_HUNDRED = 70
"""Repeats find most work done: kills among them hit little."""
LAND_SECONDS = 0.15
"""What was under way at the sink and in the database has ended by then."""
FIND_SECONDS = 10.0
"""Half of it for a fitting target, half for any."""
JOB_SECONDS = 0.4
"""About a job's life at the sink's latency: a kill comes at a random moment of it."""
LOOK_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One planned kill, once this many deliveries of a replay were answered."""

    replay: int
    after: int
    whole_group: bool
    moment: Moment = "any"
    """What the target is waited for: jobs that run, a job that has had its effect, nothing."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A worker group as it runs now: its parent and its pool."""

    name: str
    parent: int
    pool: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What one kill hit: the jobs that were running there, each with where it was."""

    kill: Kill
    target: str
    pids: Sequence[int]
    hit: Sequence[dict[str, str]] = field(default_factory=tuple)

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        return asdict(self)


def plan(seed: int, *, kills: int, replays: int, deliveries: int) -> list[Kill]:
    """Draw the kills, in order: 80 % a pool child, 20 % a whole group; most in the first replay.

    Half of them come while jobs run, half right after an effect; the first always does.
    """
    lots = random.Random(f"{seed} kills")
    drawn = [_draw(lots, replays=replays, deliveries=deliveries) for _ in range(kills)]
    ordered = sorted(drawn, key=lambda kill: (kill.replay, kill.after))
    return [*(replace(one, replay=0, moment="effect") for one in ordered[:1]), *ordered[1:]]


def _draw(lots: random.Random, *, replays: int, deliveries: int) -> Kill:
    early = lots.randrange(100) < FIRST_REPLAY_PER_HUNDRED
    moments: tuple[Moment, ...] = ("busy", "effect")
    return Kill(
        replay=0 if early else lots.randrange(replays),
        after=lots.randint(1, deliveries),
        whole_group=lots.randrange(100) < GROUPS_PER_HUNDRED,
        moment=lots.choice(moments),
    )


class Killer:
    """Carries out the kills of one replay while its deliveries are sent."""

    def __init__(
        self,
        kills: Sequence[Kill],
        *,
        groups: Callable[[], Sequence[Group]],
        sink: Sink,
        seed: int,
    ) -> None:
        self.log: list[Killed] = []
        self._kills, self._groups, self._sink = kills, groups, sink
        self._lots = random.Random(f"{seed} targets {kills}")
        self._answered = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="killer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until every kill is done: what has not come up by then comes now."""
        with self._changed:
            self._answered = max((kill.after for kill in self._kills), default=0)
            self._changed.notify()
        self._thread.join()

    def answered(self) -> None:
        """Hear of one more answered delivery."""
        with self._changed:
            self._answered += 1
            self._changed.notify()

    def _run(self) -> None:
        try:
            for kill in self._kills:
                with self._changed:
                    self._changed.wait_for(partial(self._reached, kill))
                self._carry_out(kill)
        finally:
            connections.close_all()

    def _reached(self, kill: Kill) -> bool:
        return self._answered >= kill.after

    def _carry_out(self, kill: Kill) -> None:
        target = self._target(kill.moment)
        if target is None:
            self.log.append(Killed(kill=kill, target="no group was up", pids=()))
            return
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
        time.sleep(LAND_SECONDS)
        hit = [self._told(job) for job in _running_in(pids)]
        self.log.append(Killed(kill=kill, target=name, pids=pids, hit=hit))

    def _target(self, moment: Moment) -> tuple[Group, int] | None:
        """Choose a group that is up and a child of it: a fitting one where there is any in time."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < FIND_SECONDS:
            up = [(group, pid) for group in self._groups() for pid in group.pool]
            wanted: Moment = "any" if waited > FIND_SECONDS / 2 else moment
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


def _running_in(pids: Sequence[int]) -> list[Job]:
    """List the jobs these processes have leased."""
    running = Job.objects.filter(state=Job.State.RUNNING).select_related("key")
    return [job for job in running if _pid(job) in pids]


def _pid(job: Job) -> int:
    """Read who works it: a worker's name is host:pid:mark."""
    return int(job.worker.split(":")[1])


def _effects(counted: Any, job: Job) -> int:
    return int(counted.get(job.key.downstream_key, {"effects": 0})["effects"])
