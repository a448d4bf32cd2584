"""Bring a data folder's whole deployment up, and down again, in the right order."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from reliability.embedded.errors import EmbeddedUnavailable
from reliability.embedded.hold import Hold
from reliability.embedded.place import free_port
from reliability.embedded.servers import Servers
from reliability.embedded.stack import ROOT, Stack

PORT = 8000
PREPARE_SECONDS = 300


class Deployment:
    """The servers, when they are ours to run, and the stack of processes over them."""

    def __init__(
        self, folder: Path, *, embedded: bool, port: int = 0, workers: int = 1
    ) -> None:
        self.folder = folder.absolute()
        self.servers = Servers(self.folder) if embedded else None
        self._hold = Hold(self.folder)
        self._port = port
        self._workers = workers
        self.stack: Stack | None = None

    def start(self, say: Callable[[str], object]) -> str:
        """Start all of it and return the console's URL; `say` is told of each step.

        Raises `AlreadyRunning` or `EmbeddedUnavailable`, leaving nothing behind.
        """
        try:
            if self.servers:
                self.servers.start()
                say("PostgreSQL and Valkey run")
            else:
                self._hold.take()
            environment = {**os.environ, "RELIABILITY_DATA": str(self.folder)}
            say("Migrating the database and collecting static files")
            prepare(environment)
            say("Starting web, workers and beat")
            # A port given by hand must be that one; else 8000 if it is free.
            port = self._port or free_port(PORT)
            self.stack = Stack(
                self.folder, environment=environment, port=port, workers=self._workers
            )
            return self.stack.start()
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Return when asked to stop, restarting a server of ours that dies meanwhile."""
        if self.stack:
            self.stack.wait(self.servers.mend if self.servers else lambda: None)

    def stop(self) -> None:
        """Stop everything, programs first."""
        if self.stack:
            self.stack.stop()
        if self.servers:
            self.servers.stop()
        self._hold.release()


def prepare(environment: Mapping[str, str]) -> None:
    """Migrate the database and collect the static files, side by side.

    Raises `EmbeddedUnavailable` with what the one that failed said, in one line.
    """
    commands = (["migrate", "--no-input", "-v0"], ["collectstatic", "--no-input", "-v0"])
    running = [
        subprocess.Popen(  # noqa: S603 - our own commands
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for process in running:
        _, said = process.communicate(timeout=PREPARE_SECONDS)
        if process.returncode:
            raise EmbeddedUnavailable(_in_one_line(said))


def _in_one_line(said: str) -> str:
    """Return what a failed command said: each check's finding with its hint, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    findings = [line for line in lines if line.startswith(("?: ", "HINT: "))]
    return " ".join(findings or lines[-1:]) or "It failed silently."
