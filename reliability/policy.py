"""How often to try, how long to wait, when to give up. Pure: no clock, no database."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Literal

from reliability.errors import PermanentError, RetryLater, UseRunOnce

EXPONENT_MAX = 64
"""Doublings beyond this change nothing: every cap is reached long before."""

ATTEMPTS_MIN, ATTEMPTS_MAX = 2, 1_000
RELEASES_MAX = 20
CRASHES_MAX = 10
CRASHES_ALONE_MAX = 3


@dataclass(frozen=True, kw_only=True)
class RunOnce:
    """No schedule at all: one start; a failure or a crash is a dead letter a person decides on."""

    attempts: Literal[1] = 1
    user_facing: bool = False


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Retry up to ``attempts`` failures, waiting U(0, min(cap, first·factor^(n−1))) after the n-th.

    Full jitter ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015): the whole wait is
    drawn, so that clients that failed together do not come back together.
    """

    first: timedelta
    cap: timedelta
    attempts: int
    factor: float = 2.0
    jitter: Literal["full", "none"] = "full"
    user_facing: bool = False

    def __post_init__(self) -> None:
        if self.attempts == 1:
            raise UseRunOnce(
                "Backoff(attempts=1) never retries: write policy=RunOnce(), whose failures "
                "go to a person at once."
            )
        if not ATTEMPTS_MIN <= self.attempts <= ATTEMPTS_MAX:
            raise ValueError(
                f"Backoff: attempts must be {ATTEMPTS_MIN} to {ATTEMPTS_MAX}, not {self.attempts}."
            )
        if self.first <= timedelta(0) or self.cap < self.first:
            raise ValueError(
                "Backoff: first must be above zero and cap no shorter than first."
            )
        if not 1 <= self.factor <= EXPONENT_MAX:
            raise ValueError(
                f"Backoff: factor must be 1 to {EXPONENT_MAX}, not {self.factor}."
            )

    @classmethod
    def filling(
        cls,
        window: timedelta,
        *,
        first: timedelta = timedelta(seconds=1),
        cap: timedelta = timedelta(hours=1),
    ) -> "Backoff":
        """Choose the most attempts whose waits together still fit into ``window``."""
        attempts, waited = 1, timedelta(0)
        probe = cls(first=first, cap=cap, attempts=ATTEMPTS_MAX)
        while attempts < ATTEMPTS_MAX and waited + probe.wait_max(attempts) <= window:
            waited += probe.wait_max(attempts)
            attempts += 1
        return cls(first=first, cap=cap, attempts=max(attempts, ATTEMPTS_MIN))

    def wait_max(self, failures: int) -> timedelta:
        """Return the upper bound of the wait after the ``failures``-th failure, in [0, cap]."""
        exponent = min(max(failures, 1) - 1, EXPONENT_MAX)
        seconds = self.first.total_seconds() * min(self.factor**exponent, 1e12)
        return timedelta(seconds=min(seconds, self.cap.total_seconds()))

    def wait(self, failures: int, uniform: Callable[[float, float], float]) -> timedelta:
        """Draw the wait after the ``failures``-th failure; ``uniform(a, b)`` supplies the jitter."""
        longest = self.wait_max(failures)
        if self.jitter == "none":
            return longest
        return timedelta(seconds=uniform(0.0, longest.total_seconds()))

    def waits_max(self) -> list[timedelta]:
        """Return the upper bounds of all waits: one fewer than there are attempts."""
        return [self.wait_max(n) for n in range(1, self.attempts)]


Policy = RunOnce | Backoff

USER_FACING = Backoff(
    first=timedelta(milliseconds=200), cap=timedelta(seconds=30), attempts=5, user_facing=True
)
BACKGROUND = Backoff(first=timedelta(seconds=2), cap=timedelta(hours=1), attempts=12)


# What follows an attempt.


@dataclass(frozen=True)
class Retry:
    after: timedelta


@dataclass(frozen=True)
class Bury:
    outcome: Literal["failed", "unknown", "expired"]
    reason: str


def after_failure(
    policy: Policy,
    *,
    failures: int,
    error: BaseException,
    uniform: Callable[[float, float], float],
) -> Retry | Bury:
    """Decide what follows the ``failures``-th failure of a round (counted from 1)."""
    if isinstance(error, PermanentError):
        return Bury("failed", "permanent: the handler said that trying again cannot help")
    if isinstance(policy, RunOnce):
        return Bury("failed", "run once: a person decides what happens next")
    if failures >= policy.attempts:
        return Bury("failed", f"{failures} of {policy.attempts} attempts failed")
    if isinstance(error, RetryLater):
        return Retry(min(max(error.after, timedelta(0)), policy.cap))
    return Retry(policy.wait(failures, uniform))


def after_crash(
    *, intent: bool, repeatable: bool, crashes: int, crashes_alone: int
) -> Retry | Bury:
    """Decide what follows an expired lease, with this crash already counted.

    ``intent`` is the mark committed before the first outside effect of a job that must not
    repeat it; ``repeatable`` says that the kind's sink rejects a repeat.
    """
    if intent and not repeatable:
        return Bury(
            "unknown", "the worker was lost after it began: the effect may have happened"
        )
    if crashes_alone >= CRASHES_ALONE_MAX or crashes >= CRASHES_MAX:
        return Bury("unknown", f"crash budget spent: its worker was lost {crashes} times")
    return Retry(timedelta(0))


# How long a job can take at the very worst.


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The times of the machinery around a policy."""

    limit: timedelta
    lease: timedelta
    sweep: timedelta
    pickup: timedelta


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """The four terms of S; ``total`` is what a sink's window must outlast."""

    waits: timedelta
    work: timedelta
    crashes: timedelta
    pickups: timedelta

    @property
    def total(self) -> timedelta:
        return self.waits + self.work + self.crashes + self.pickups


@lru_cache
def worst_case(policy: Policy, pace: Pace) -> WorstCase:
    """Return S = Σ waits + attempts·limit + crashes·(lease + sweep) + pickups, as upper bounds."""
    waits = policy.waits_max() if isinstance(policy, Backoff) else []
    crashes = CRASHES_MAX if isinstance(policy, Backoff) else 1
    return WorstCase(
        waits=sum(waits, timedelta(0)),
        work=policy.attempts * pace.limit,
        crashes=crashes * (pace.lease + pace.sweep),
        pickups=(policy.attempts + crashes) * pace.pickup,
    )
