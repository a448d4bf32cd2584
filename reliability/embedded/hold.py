"""Hold a data folder: one process at a time, and nothing of a killed predecessor left running."""

import fcntl
from pathlib import Path
from typing import IO

from reliability.embedded.errors import AlreadyRunning
from reliability.embedded.leftovers import end_leftovers
from reliability.embedded.state import read_state


class Hold:
    """The system lets go of the lock when its holder dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    @property
    def taken(self) -> bool:
        """Tell whether we hold the folder."""
        return self._lock is not None

    def take(self) -> None:
        """Take the folder, making it if need be, and end what a killed holder left behind.

        Raises `AlreadyRunning` while another process has it.
        """
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        for name in ("log", "run"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        lock = (self.folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise AlreadyRunning(read_state(self.folder).url) from None
        self._lock = lock
        end_leftovers(self.folder)

    def release(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
