"""How fast a redrive goes and when it stops itself. Pure: no clock, no database."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

STEPS = (1, 10)
"""Letters of the first steps of a ramp; the steady rate comes after them."""
RATE_MIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What the starter chose. ``rate`` is letters per second, ``stop_percent`` 1 to 100."""

    how: Literal["ramp", "steady", "one"] = "ramp"
    rate: float
    stop_percent: int
    stop_after: int

    def problem(self, rate_max: float) -> str:
        """Say what is wrong with it; empty for nothing."""
        if self.how not in {"ramp", "steady", "one"}:
            return f"The pace is ramp, steady or one, not {self.how!r}."
        if not RATE_MIN <= self.rate <= rate_max:  # NaN is refused as well
            return f"Letters per second: {RATE_MIN:g} to {rate_max:g}, not {self.rate:g}."
        if not 1 <= self.stop_percent <= 100:  # noqa: PLR2004 - a share
            return f"It stops at 1 to 100 % failed again, not {self.stop_percent}."
        if self.stop_after < 1:
            return "The stop needs at least one result to judge by."
        return ""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where its letters are, and the results since a person last let it go on."""

    pending: int
    running: int
    """On their way: requeued, without an outcome yet."""
    retrying: int
    """Those of them whose first start failed."""
    succeeded: int
    failing: int
    """Failed again, or retrying: a failed start counts before its retries are over."""

    @property
    def unsettled(self) -> int:
        """Letters of which nothing is known yet."""
        return self.running - self.retrying


# What comes next.


@dataclass(frozen=True)
class Release:
    """Requeue up to ``letters`` now; ``step`` is where the ramp stands then."""

    letters: int
    step: int


@dataclass(frozen=True)
class Wait:
    """Nothing until results come in, or the rate allows the next letter."""


@dataclass(frozen=True)
class Stop:
    """Too much fails: a person decides whether it goes on."""

    why: str


@dataclass(frozen=True)
class Ask:
    """Its starter asked to be asked."""

    why: str


@dataclass(frozen=True)
class End:
    """Every letter has its outcome."""


Next = Release | Wait | Stop | Ask | End


def next_move(pace: Pace, standing: Standing, *, step: int, budget: int) -> Next:
    """Decide what a running redrive does now; ``budget`` is what the steady rate allows.

    The first letters are judged strictly: one failure of the first one stops it. Later it stops
    when more than ``stop_percent`` of at least ``stop_after`` results failed.
    """
    if why := _too_many(pace, standing, step):
        return Stop(why)
    if not standing.pending:
        return Wait() if standing.running else End()
    if pace.how == "steady" or step >= len(STEPS):
        return _steady(standing, step=step, budget=budget)
    return _first_steps(pace, standing, step)


def _first_steps(pace: Pace, standing: Standing, step: int) -> Next:
    if standing.unsettled:
        return Wait()
    if pace.how == "one" and step:
        return Ask("the first letter has settled; it goes on when somebody resumes it")
    return Release(STEPS[step], step + 1)


def _too_many(pace: Pace, standing: Standing, step: int) -> str:
    failing, results = standing.failing, standing.succeeded + standing.failing
    if pace.how != "steady" and step == 1 and failing:
        return "the first letter failed again"
    if results >= pace.stop_after and failing * 100 > pace.stop_percent * results:
        return f"{failing} of {results} results failed again, more than {pace.stop_percent} %"
    return ""


def _steady(standing: Standing, *, step: int, budget: int) -> Next:
    last_step_settles = step == len(STEPS) and standing.unsettled
    if not budget or last_step_settles:
        return Wait()
    return Release(budget, len(STEPS) + 1)


def allowance(rate: float, since: timedelta, *, longest: timedelta) -> int:
    """Return how many letters the rate allows after ``since``; a long silence earns no more than
    ``longest`` did, but always one.
    """
    due = math.floor(rate * max(since, timedelta(0)).total_seconds())
    return min(due, max(1, math.ceil(rate * longest.total_seconds())))


def room(rate: float, standing: Standing, *, unsettled: timedelta) -> int:
    """Return how many letters may be on their way besides those that are: no results, no pouring."""
    most = max(STEPS[-1], math.ceil(rate * unsettled.total_seconds()))
    return max(0, most - standing.unsettled)
