"""What a data folder remembers between two starts: ports, passwords, processes, the console's URL."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from reliability.embedded.processes import Process

FILE = "state.json"


@dataclass(frozen=True)
class State:
    """The content of the state file; it holds passwords, so it is 0600."""

    home: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)
    processes: Mapping[str, Process] = field(default_factory=dict)
    url: str | None = None

    def with_process(self, name: str, process: Process | None) -> "State":
        """Return a state in which `name` is this process, or is not running."""
        others = {key: value for key, value in self.processes.items() if key != name}
        return replace(self, processes=others | ({name: process} if process else {}))


def read_state(folder: Path) -> State:
    """Read the folder's state; an absent or cut-off file reads as a folder never used."""
    try:
        raw = json.loads((folder / FILE).read_text())
        processes = {name: Process(**value) for name, value in raw.pop("processes").items()}
        return State(**raw, processes=processes)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return State()


def write_state(folder: Path, state: State) -> None:
    """Replace the state file in one step, readable by its owner only."""
    write_private(folder / FILE, json.dumps(asdict(state), indent=1))


def write_private(path: Path, text: str) -> None:
    """Write a 0600 file in one step, so that no reader sees half of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(unfinished, flags, 0o600), "w") as file:
        file.write(text)
    unfinished.replace(path)
