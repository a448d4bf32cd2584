"""Progress bars of the long parts, on the error stream: the output stays for the answer."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
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


@contextmanager
def bytes_bar(title: str, size: int) -> Iterator[Progress]:
    """Show how far into a file of ``size`` bytes one is; its only task is advanced by bytes."""
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        progress.add_task(title, total=size)
        yield progress


@contextmanager
def events_bar(title: str) -> Iterator[Progress]:
    """Count events whose number nobody knows; its only task is advanced by one each."""
    columns = (
        TextColumn("{task.description:<28}"),
        TextColumn("{task.completed} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        progress.add_task(title, total=None)
        yield progress


@contextmanager
def reading_bar(title: str) -> Iterator[Callable[[int], None]]:
    """Count a file's lines, whose number nobody knows; yield what is told how many are read."""
    columns = (
        TextColumn("{task.description:<28}"),
        TextColumn("{task.completed:,} lines"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None)
        yield lambda lines: progress.update(task, completed=lines)
