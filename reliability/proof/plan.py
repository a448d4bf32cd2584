"""What goes wrong in a run and when, all of it drawn from the seed before anything starts."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from reliability.killing import Point

Moment = Literal["any", "busy", "effect", "point"]
GROUPS_PER_HUNDRED = 20
FIRST_REPLAY_PER_HUNDRED = 70
"""Repeats find most work done: what strikes among them hits little."""
POINTS = (
    Point.UNFINISHED,
    Point.CLAIMED,
    Point.LEASED,
    Point.RESCUED,
    Point.UNCOMMITTED,
    Point.INTENDED,
    Point.UNRUNG,
    Point.AMID_BATCH,
    Point.COMMITTED,
)
"""The points that a day's traffic passes; at the others `benchmarks.marks` and tests kill."""


class Fault(StrEnum):
    """What may go wrong besides killed processes."""

    BROKER = "broker"
    POSTGRES = "postgres"
    BACKEND = "backend"
    SIGSTOP = "sigstop"
    ANSWERS = "answers"
    CLOCK = "clock"


STRIKES = tuple(fault for fault in Fault if fault is not Fault.CLOCK)
"""Those that come at a moment; a wrong clock is wrong throughout."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One planned kill, once this many deliveries of a replay were answered."""

    replay: int
    after: int
    whole_group: bool
    moment: Moment = "any"
    """What is waited for: running jobs, a job that has had its effect, a process at the point."""
    point: str = ""


@dataclass(frozen=True, kw_only=True)
class Strike:
    """One planned fault, once this many deliveries of a replay were answered."""

    replay: int
    after: int
    fault: Fault


Act = Kill | Strike


def plan(seed: int, *, kills: int, replays: int, deliveries: int) -> list[Kill]:
    """Draw the kills, in order: a third at named points, the others at random moments.

    Of those 80 % take a pool child and 20 % a whole group; half come while jobs run, half right
    after an effect, and the first kill always does. Most come in the first replay; in the others
    traffic passes no point but the door's.
    """
    lots = random.Random(f"{seed} kills")
    drawn = [_draw(lots, replays=replays, deliveries=deliveries) for _ in range(kills)]
    ordered = sorted(drawn, key=lambda kill: (kill.replay, kill.after))
    aimed = [*(replace(one, replay=0, moment="effect") for one in ordered[:1]), *ordered[1:]]
    points = lots.sample(POINTS, len(POINTS))
    for turn, nth in enumerate(range(2, len(aimed), 3)):
        point = points[turn % len(points)]
        replay = aimed[nth].replay if point == Point.CLAIMED else 0
        named = replace(aimed[nth], moment="point", point=point, whole_group=False)
        aimed[nth] = replace(named, replay=replay)
    return [*aimed[:1], *sorted(aimed[1:], key=lambda kill: (kill.replay, kill.after))]


def _draw(lots: random.Random, *, replays: int, deliveries: int) -> Kill:
    early = lots.randrange(100) < FIRST_REPLAY_PER_HUNDRED
    moments: tuple[Moment, ...] = ("busy", "effect")
    return Kill(
        replay=0 if early else lots.randrange(replays),
        after=lots.randint(1, deliveries),
        whole_group=lots.randrange(100) < GROUPS_PER_HUNDRED,
        moment=lots.choice(moments),
    )


def strikes(
    seed: int, faults: Collection[Fault], *, replays: int, deliveries: int
) -> list[Strike]:
    """Draw when each fault strikes: once while new work still comes, and once in any replay."""
    lots = random.Random(f"{seed} faults")
    fresh = max(1, deliveries * 3 // 4)
    drawn = [
        Strike(
            replay=replay, after=lots.randint(1, deliveries if again else fresh), fault=fault
        )
        for fault in STRIKES
        if fault in faults
        for again, replay in enumerate((0, lots.randrange(replays)))
    ]
    return sorted(drawn, key=lambda strike: (strike.replay, strike.after))


def of_replay(number: int, kills: Sequence[Kill], struck: Sequence[Strike]) -> list[Act]:
    """Return what is to happen in one replay, in order."""
    planned: list[Act] = [*kills, *struck]
    return sorted((act for act in planned if act.replay == number), key=lambda act: act.after)
