"""Name a process so that a reused number is never mistaken for it, and end it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process number together with the moment it began, which no later process shares."""

    pid: int
    started: str


def identify(pid: int) -> Process | None:
    """Name the process that holds this number now; `None` when there is none or it has ended."""
    started = _started_linux(pid) if sys.platform == "linux" else _started_ps(pid)
    return Process(pid, started) if started else None


def is_running(process: Process | None) -> bool:
    """Tell whether exactly this process still runs, not merely one with its number."""
    return process is not None and identify(process.pid) == process


def began_at(pid: int) -> float | None:
    """Return when the process began, in seconds since 1970, exact to about a second."""
    if sys.platform != "linux":
        started = _started_ps(pid)
        return time.mktime(time.strptime(started, "%c")) if started else None
    fields = _stat_fields(pid)
    if fields is None:
        return None
    boot = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime ")
    )
    return boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def end(processes: Iterable[Process], *signals: signal.Signals, seconds: float = 3.0) -> None:
    """Send each signal in turn, `seconds` apart, to whichever of these still run; then SIGKILL.

    Returns once all have ended. A process that leads a group takes its group with it.
    """
    left = [process for process in processes if is_running(process)]
    for number in (*signals, signal.SIGKILL):
        for process in left:
            _send(process, number)
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left = [process for process in left if is_running(process)]
        if not left:
            return


def children(pid: int) -> list[int]:
    """Return the numbers of a process's direct children: for a worker group, its pool."""
    out = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=", "-o", "ppid="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    pairs = [line.split() for line in out.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _send(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if number == signal.SIGKILL and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)


def _stat_fields(pid: int) -> list[str] | None:
    # proc_pid_stat(5): the name in parentheses may hold spaces, so read behind the last one.
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields


def _started_linux(pid: int) -> str | None:
    fields = _stat_fields(pid)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{fields[19]}" if fields else None


def _started_ps(pid: int) -> str | None:
    command = ["/bin/ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    out = subprocess.run(  # noqa: S603 - fixed program, a number as its argument
        command, capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    ).stdout.strip()
    state, _, started = out.partition(" ")
    return None if not out or state.startswith("Z") else started.strip()
