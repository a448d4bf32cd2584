"""SIGKILL a worker around the mark of an effect, and count what the downstream was asked.

``python -m benchmarks.marks --kills 50`` kills 50 workers of each record, one after the other, each
a process of its own; the sweep and a second worker follow each. Ends with 1 where a promise broke.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from reliability.embedded.servers import throwaway
from reliability.killing import ORDERED, ORDERS, Point, obeyed, order
from reliability.proof.sink_process import Sink

ROOT = Path(__file__).resolve().parents[1]
PLAY = "import django; django.setup(); from benchmarks import marks; marks.play({kills})"
POINTS = {
    "before": (Point.MARKED, Point.ANSWERED, Point.UNFINISHED),
    "after": (Point.ANSWERED, Point.LEASED, Point.UNFINISHED),
}
"""Around the mark: before it, between mark and effect, after both."""
ALLOWED = {
    ("before", Point.MARKED): (0, "dead", "unknown"),
    ("before", Point.ANSWERED): (1, "dead", "unknown"),
    ("before", Point.UNFINISHED): (1, "done", ""),
    ("after", Point.ANSWERED): (2, "done", ""),
    ("after", Point.LEASED): (1, "done", ""),
    ("after", Point.UNFINISHED): (1, "done", ""),
}
"""Requests that the downstream got, the job's state, its letter's outcome."""


@dataclass(frozen=True)
class Ended:
    """What one kill led to, a second worker later."""

    record: str
    point: str
    requests: int
    state: str
    outcome: str
    killed: bool

    @property
    def as_promised(self) -> bool:
        found = (self.requests, self.state, self.outcome)
        return self.killed and found == ALLOWED[self.record, Point(self.point)]


def main() -> int:
    """Run it on servers of its own and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="of each record (50)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with throwaway(durable=False) as addresses:
        sink = Sink(addresses.folder / "sink", key_check=False)
        try:
            ended = _play(addresses.folder, sink, asked.kills)
        finally:
            sink.stop()
    ok = len(ended) == 2 * asked.kills and all(one.as_promised for one in ended)
    facts = {"ok": ok, "kills": len(ended), "counted": _counted(ended)}
    lines = [f"{n:>4}  {what}" for what, n in _counted(ended).items()]
    text = json.dumps(facts) if asked.json else "\n".join([*lines, "PASS" if ok else "FAIL"])
    sys.stdout.write(f"{text}\n")
    return 0 if ok else 1


def _play(folder: Path, sink: Sink, kills: int) -> list[Ended]:
    (folder / ORDERS).mkdir()
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL", "EMAIL_URL", "SECRET_KEY")
    clean = {name: v for name, v in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "-c", PLAY.format(kills=kills)],
        cwd=ROOT,
        env=clean | sink.environment | {
            "DJANGO_SETTINGS_MODULE": "reliability.project.settings",
            "RELIABILITY_DATA": str(folder),
            "RELIABILITY_PACE": "quick",
            "RELIABILITY_KILL": ORDERED,
            "RELIABILITY_HANDLERS": "benchmarks.mark_kinds",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout)
    counts: Mapping[str, Any] = sink.counts(by_key=True)["by_key"]
    return [
        Ended(requests=counts.get(one.pop("downstream"), {"requests": 0})["requests"], **one)
        for one in found
    ]


def _counted(ended: Sequence[Ended]) -> dict[str, int]:
    """Count equal ends, in words."""
    return dict(
        Counter(
            f"record={one.record}, killed at {one.point}: {one.requests} requests, {one.state}"
            f"{f' ({one.outcome})' if one.outcome else ''}"
            for one in ended
        )
    )


def play(kills: int) -> None:
    """Kill the workers; needs Django set up in the environment that ``_play`` makes."""
    from django.core.management import call_command  # noqa: PLC0415 - only now is Django set up

    from reliability.models import Tenant  # noqa: PLC0415 - likewise

    call_command("migrate", verbosity=0)
    Tenant.objects.create(slug="marks", name="Marks")
    found = [
        _kill(record, point, number)
        for record, points in POINTS.items()
        for number, point in enumerate(islice(cycle(points), kills))
    ]
    sys.stdout.write(json.dumps(found))


def _kill(record: str, point: Point, number: int) -> dict[str, Any]:
    from django.utils import timezone  # noqa: PLC0415 - see play

    from reliability import enqueue  # noqa: PLC0415
    from reliability.models import Job  # noqa: PLC0415
    from reliability.sweep import sweep  # noqa: PLC0415

    folder, key = Path(os.environ["RELIABILITY_DATA"]), f"{record} {number}"
    enqueue(f"marks.{record}", key=key, tenant="marks")
    order(folder, point)
    status = _worker()
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    killed = killed and obeyed(folder, point) is not None
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(state="running").update(lease_expires_at=past)
    sweep("command")
    _worker()
    job = Job.objects.get(key__key=key)
    letter = job.letters.first()
    return {
        "record": record,
        "point": point,
        "state": job.state,
        "outcome": letter.outcome if letter else "",
        "killed": killed,
        "downstream": _downstream_key(job.key.downstream_key),
    }


def _downstream_key(key: str) -> str:
    from reliability.handlers import DownstreamKey  # noqa: PLC0415 - see play

    return DownstreamKey(key)("pay")


def _worker() -> int:
    """Drain in a process of its own; return how it ended, as ``waitpid`` does."""
    from django.db import connections  # noqa: PLC0415 - see play

    from reliability.work.drain import OUTSIDE, drain  # noqa: PLC0415

    connections.close_all()
    pid = os.fork()
    if pid == 0:
        drain(OUTSIDE)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    sys.exit(main())
