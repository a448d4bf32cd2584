"""Run a command again, as a process of its own, over servers that are up by then."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from reliability.embedded.leftovers import end_stack
from reliability.embedded.stack import ROOT

HANDLERS = "reliability.proof.handlers"
OURS = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL", "EMAIL_URL", "SECRET_KEY", "DEBUG")
LOOK_SECONDS = 1.0
END_SECONDS = 15
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_inside() -> bool:
    """Tell whether this process is the one that was started again."""
    return os.environ.get("RELIABILITY_HANDLERS") == HANDLERS


def environment(
    folder: Path, *, pace: str = "quick", handlers: str = HANDLERS
) -> dict[str, str]:
    """Return an environment that knows the folder's servers, some handlers and a pace.

    Nobody's database, broker or secrets are taken along.
    """
    clean = {name: v for name, v in os.environ.items() if not name.startswith(OURS)}
    return clean | {
        "RELIABILITY_DATA": str(folder),
        "RELIABILITY_HANDLERS": handlers,
        "RELIABILITY_PACE": pace,
    }


def run_inside(
    arguments: Sequence[str],
    *,
    folder: Path,
    pace: str = "quick",
    handlers: str = HANDLERS,
    each_second: Callable[[], None] = lambda: None,
) -> int:
    """Run `manage.py` over the folder's servers, pass signals on, and return its exit code.

    It leads a session of its own, so that Ctrl-C reaches it once: from us. Whatever of its stack
    outlives it is ended.
    """
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(folder, pace=pace, handlers=handlers),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )

    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        while True:
            try:
                return process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                each_second()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.terminate()
            process.wait(END_SECONDS)
        end_stack(folder)
