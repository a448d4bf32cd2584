"""What the stack takes while it has nothing to do: memory and processor time of all its processes.

    python -m benchmarks.idle [--seconds 60]

Runs ``manage.py up`` on an empty data folder, asks a page of it twenty times, lets it rest and
prints the sum over its processes: memory (each shared page counted once, as the kernel's PSS) and
the share of a core. Linux only.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reliability.embedded.place import free_port

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS, REST_SECONDS, END_SECONDS = 90, 30, 20
TICKS = os.sysconf("SC_CLK_TCK")
ADDRESSES = ("DATABASE_URL", "BROKER_URL", "RELIABILITY_PROCESS")


@contextmanager
def stack(folder: str) -> Iterator[int]:
    """Run the stack until the block ends; yield its first process."""
    port = free_port(0)
    environment = {k: v for k, v in os.environ.items() if k not in ADDRESSES}
    environment |= {"RELIABILITY_DATA": folder, "DEBUG": "true"}
    up = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port)],
        cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait(port)
        for _ in range(20):
            _ask(port)
        time.sleep(REST_SECONDS)
        yield up.pid
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(END_SECONDS)


def _ask(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
        pass


def _wait(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError):
            _ask(port)
            return
        time.sleep(0.5)
    raise TimeoutError("the stack did not come up")


def family(first: int) -> set[int]:
    """Return a process and all that it started, by now."""
    parents = {int(p.name): _stat(int(p.name)) for p in Path("/proc").glob("[0-9]*")}
    found, new = set[int](), {first}
    while new:
        found |= new
        new = {pid for pid, stat in parents.items() if stat and int(stat[1]) in new} - found
    return found


def _stat(pid: int) -> list[str]:
    """Return a process's facts from its state on; none once it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def processor_seconds(pids: set[int]) -> float:
    stats = [stat for pid in pids if (stat := _stat(pid))]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS


def megabytes(pids: set[int]) -> float:
    found = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                found += int(line.split()[1]) if line.startswith("Pss:") else 0
    return found / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder, stack(folder) as first:
        pids = family(first)
        memory, before = megabytes(pids), processor_seconds(pids)
        time.sleep(seconds)
        share = 100 * (processor_seconds(pids) - before) / seconds
    print(json.dumps({
        "processes": len(pids), "memory, MB": round(memory), "of a core, %": round(share, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
