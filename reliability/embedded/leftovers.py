"""End what a killed predecessor left running, by number and start time."""

import json
import signal
from pathlib import Path

from reliability.embedded.processes import Process, end
from reliability.embedded.state import read_state


def end_leftovers(folder: Path) -> None:
    """End every process the folder's files name, if it still is that process."""
    end_stack(folder)
    processes = dict(read_state(folder).processes)
    processes.pop("supervisor", None)
    end(processes.values(), signal.SIGINT, signal.SIGQUIT, seconds=4)


def end_stack(folder: Path) -> None:
    """End the folder's supervisor and what it supervised, not the servers.

    The supervisor goes first and at once, or it would restart what we end.
    """
    if supervisor := read_state(folder).processes.get("supervisor"):
        end([supervisor])
    end(_supervised(folder), signal.SIGTERM, seconds=2)


def _supervised(folder: Path) -> list[Process]:
    found = []
    for path in (folder / "run").glob("*.json"):
        try:
            found.append(Process(**json.loads(path.read_text())))
        except (ValueError, TypeError):  # cut off while being written: nothing was named yet
            continue
    return found
