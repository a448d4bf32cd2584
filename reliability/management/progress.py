"""Progress bars of the long parts, on the error stream: the output stays for the answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

_COLUMNS = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn())


class Bar:
    """One bar; may be moved from any thread."""

    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total)
        self._lock = threading.Lock()
        self._total = total

    def advance(self) -> None:
        """Move by one."""
        self._progress.advance(self._task)

    def left(self, number: int) -> None:
        """Say how many are left; the total grows where there are more than were known."""
        with self._lock:
            self._total = max(self._total, number)
            self._progress.update(
                self._task, total=self._total, completed=self._total - number
            )


@contextmanager
def bar(title: str, total: int) -> Iterator[Bar]:
    """Show a bar while the block runs."""
    console = Console(stderr=True)
    with Progress(*_COLUMNS, TimeElapsedColumn(), console=console) as progress:
        yield Bar(progress, title, total)


def say(words: str) -> None:
    """Tell a step on the error stream."""
    Console(stderr=True, markup=False, highlight=False).print(words)
