"""What a herd of clients does after one failure they share: how many come back at once, and when."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from statistics import fmean

from reliability.policy import Backoff

BUCKET = timedelta(milliseconds=100)


@dataclass(frozen=True)
class Stampede:
    """``peak`` is the most requests in one bucket, ``windows`` how many buckets had any."""

    peak: float
    windows: float


def returns(
    policy: Backoff, *, clients: int, uniform: Callable[[float, float], float]
) -> Counter[int]:
    """Count the returns in each bucket: every client fails at time 0 and at each return."""
    buckets: Counter[int] = Counter()
    for _ in range(clients):
        at = timedelta(0)
        for failures in range(1, policy.attempts):
            at += policy.wait(failures, uniform)
            buckets[at // BUCKET] += 1
    return buckets


def stampede(
    policy: Backoff, *, clients: int, uniform: Callable[[float, float], float]
) -> Stampede:
    """Let every client fail at time 0 and at each return, until its waits are used up."""
    buckets = returns(policy, clients=clients, uniform=uniform)
    return Stampede(max(buckets.values()), len(buckets))


def mean_stampede(policy: Backoff, *, clients: int, seeds: range) -> Stampede:
    """Return the mean peak and windows over one simulation a seed."""
    found = [stampede(policy, clients=clients, uniform=Random(seed).uniform) for seed in seeds]
    return Stampede(fmean(one.peak for one in found), fmean(one.windows for one in found))
