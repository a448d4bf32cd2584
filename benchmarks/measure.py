"""Run contenders in turn on one machine and print ratios: higher is better everywhere."""

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CELERY = ("-m", "celery", "-A")
WORKER = ("worker", "--concurrency=2", "--loglevel=ERROR", "--without-gossip", "--without-mingle",
          "--without-heartbeat")  # fmt: skip
OURS = [[*CELERY, "reliability.project", *WORKER, "--queues=local,outside"]]
ADDRESSES = ("DATABASE_URL", "BROKER_URL")
PACKAGES = (
    "django",
    "celery",
    "psycopg",
    "procrastinate",
    "dramatiq",
    "polars",
    "pandas",
    "duckdb",
)


@dataclass
class Figures:
    """One benchmark: ours, the peers' and the bare limit's figures, all in ``unit``."""

    name: str
    unit: str
    ours: list[float] = field(default_factory=list)
    peers: dict[str, list[float]] = field(default_factory=dict)
    limit: list[float] = field(default_factory=list)
    lower_is_better: bool = False

    def add(self, contender: str, figure: float) -> None:
        rows = {"ours": self.ours, "limit": self.limit}.get(contender)
        if rows is None:
            rows = self.peers.setdefault(contender, [])
        rows.append(figure)

    def as_dict(self) -> dict[str, Any]:
        ours = statistics.median(self.ours)
        peers = {name: statistics.median(rows) for name, rows in self.peers.items()}
        limit = statistics.median(self.limit) if self.limit else None
        others = peers | ({"limit": limit} if limit else {})
        ratios = {
            name: round(figure / ours if self.lower_is_better else ours / figure, 2)
            for name, figure in others.items()
        }
        return {
            "name": self.name, "unit": self.unit, "ours": round(ours, 2),
            "peers": {name: round(figure, 2) for name, figure in peers.items()},
            "limit": limit and round(limit, 2), "ratios": ratios, "rounds": len(self.ours),
        }  # fmt: skip


def rounds(
    count: int, contenders: Mapping[str, Callable[[], float]], figures: Figures
) -> None:
    """Measure every contender once a round, so that a busy moment hits all of them."""
    for number in range(count):
        for name, measure in contenders.items():
            figure = measure()
            figures.add(name, figure)
            print(f"{figures.name} {number + 1}/{count} {name}: {figure:.1f} {figures.unit}",
                  file=sys.stderr)  # fmt: skip


def report(found: Sequence[Figures], *, as_json: bool) -> None:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    machine = {"cores": os.cpu_count(), "system": platform.platform()}
    result = {
        "figures": [figures.as_dict() for figures in found],
        "machine": machine,
        "versions": versions,
    }
    if as_json:
        print(json.dumps(result, indent=2))
        return
    for row in result["figures"]:
        print(f"{row['name']}: ours {row['ours']} {row['unit']}; ratios {row['ratios']}")


@contextmanager
def processes(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str]
) -> Iterator[None]:
    """Run processes for the length of a measurement; where it fails, print what they said."""
    with tempfile.TemporaryFile() as said:
        started = [
            subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=dict(environment),
                stdout=said,
                stderr=said,
            )
            for command in commands
        ]
        try:
            yield
        except TimeoutError:
            said.seek(0)
            sys.stderr.write(said.read()[-4000:].decode("utf-8", "replace"))
            raise
        finally:
            _end(started)


def _end(started: Sequence["subprocess.Popen[bytes]"]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(true: Callable[[], bool], *, seconds: float) -> None:
    """Poll ten times a second; raise where it stays false."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise TimeoutError(f"not settled within {seconds:.0f} s")
        time.sleep(0.1)
