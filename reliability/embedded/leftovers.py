"""End what a killed predecessor left running, by number and start time."""

import json
import signal
from pathlib import Path

from reliability.embedded.processes import Process, end
from reliability.embedded.state import read_state


def end_leftovers(folder: Path) -> None:
    """End every process the folder's files name, if it still is that process.

    The supervisor goes first and at once, or it would restart what we end.
    """
    processes = dict(read_state(folder).processes)
    if supervisor := processes.pop("supervisor", None):
        end([supervisor])
    end(_supervised(folder), signal.SIGTERM, seconds=2)
    end(processes.values(), signal.SIGINT, signal.SIGQUIT, seconds=4)


def _supervised(folder: Path) -> list[Process]:
    found = []
    for path in (folder / "run").glob("*.json"):
        try:
            found.append(Process(**json.loads(path.read_text())))
        except (ValueError, TypeError):  # cut off while being written: nothing was named yet
            continue
    return found
