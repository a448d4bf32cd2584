"""A chart of clients that failed together and come back, without and with full jitter."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from random import Random

from reliability.policy import Backoff
from reliability.work.herd import BUCKET, Stampede, mean_stampede, returns

CLIENTS, RETURNS = 200, 5
FULL = Backoff(
    first=timedelta(milliseconds=200), cap=timedelta(seconds=30), attempts=RETURNS + 1
)
SEEDS = range(100)
LEFT, WIDTH, FLOOR, HEIGHT = 34.0, 526.0, 132.0, 122.0
SECONDS_SHOWN = 6.4


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class Herd:
    """One simulation as bars, and its figures: a mean over seeds where chance plays a part."""

    found: Stampede
    bars: list[Bar]
    by_second: list[int]
    """Returns in each second after the failure, of the simulation that is drawn."""

    @property
    def peak(self) -> int:
        return round(self.found.peak)

    @property
    def windows(self) -> int:
        return round(self.found.windows)


@dataclass(frozen=True, kw_only=True)
class Herds:
    plain: Herd
    full: Herd

    @property
    def lower_percent(self) -> int:
        """By how much full jitter lowers the peak."""
        return round(100 * (1 - self.full.found.peak / self.plain.found.peak))

    @property
    def seconds(self) -> list[tuple[int, int, int]]:
        """Second, returns without jitter, returns with full jitter."""
        both = zip(self.plain.by_second, self.full.by_second, strict=True)
        return [(second, *counts) for second, counts in enumerate(both)]


@cache
def herds() -> Herds:
    """Simulate both, as ``manage.py herd`` does; the same figures every time."""
    plain = replace(FULL, jitter="none")
    return Herds(plain=_herd(plain, range(1)), full=_herd(FULL, SEEDS))


def _herd(policy: Backoff, seeds: range) -> Herd:
    drawn = returns(policy, clients=CLIENTS, uniform=Random(seeds[0]).uniform)
    return Herd(
        found=mean_stampede(policy, clients=CLIENTS, seeds=seeds),
        bars=[_bar(bucket, count) for bucket, count in sorted(drawn.items())],
        by_second=_by_second(drawn),
    )


def _bar(bucket: int, count: int) -> Bar:
    step = WIDTH * BUCKET.total_seconds() / SECONDS_SHOWN
    height = round(HEIGHT * count / CLIENTS, 1)
    return Bar(
        round(LEFT + bucket * step, 1), round(FLOOR - height, 1), round(step - 1, 1), height
    )


def _by_second(drawn: Counter[int]) -> list[int]:
    per_second = timedelta(seconds=1) // BUCKET
    found = Counter[int]()
    for bucket, count in drawn.items():
        found[bucket // per_second] += count
    return [found[second] for second in range(int(SECONDS_SHOWN) + 1)]
