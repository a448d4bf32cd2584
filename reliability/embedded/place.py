"""Where one start of the servers lives, and how a server program is run there."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from reliability.embedded.account import Account
from reliability.embedded.errors import EmbeddedUnavailable
from reliability.embedded.processes import Process, identify

LOG_BYTES_MAX = 5_000_000
READY_WITHIN_SECONDS = 30.0

Server: TypeAlias = "subprocess.Popen[str]"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Everything a server needs to know to run for one data folder."""

    home: Path
    log: Path
    account: Account
    ports: Mapping[str, int]
    passwords: Mapping[str, str]
    durable: bool

    def spawn(
        self, name: str, command: Sequence[str | Path], *, stdin: str | None = None
    ) -> Server:
        """Run a server in a session of its own, so that Ctrl-C reaches only its parent."""
        with self._open_log(name) as log:
            server = subprocess.Popen(  # noqa: S603 - our own programs and arguments
                command,
                cwd=self.home,
                env=plain_environment(),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
                **self.account.popen(),
            )
        if stdin and server.stdin:
            server.stdin.write(stdin)
            server.stdin.close()
        return server

    def last_words(self, name: str, *, lines: int = 1) -> str:
        """Return the last lines of a server's log, for an error message."""
        said = (self.log / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return " ".join(said[-lines:]) or "it wrote nothing"

    def _open_log(self, name: str) -> Any:
        path = self.log / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")


def named(server: Server) -> Process:
    """Return the identity of a program just started, also when it ended at once."""
    return identify(server.pid) or Process(server.pid, "ended")


def wait_until_ready(
    server: Server, ready: Callable[[], bool], *, place: Place, name: str
) -> None:
    """Return once `ready` says so; refuse with the server's last words when it ended first."""
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while not ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise EmbeddedUnavailable(f"{name} did not start: {place.last_words(name)}")
        time.sleep(0.02)


def free_port(wanted: int) -> int:
    """Return the wanted loopback port when it is free, else one that is."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise EmbeddedUnavailable("No free port was found on 127.0.0.1.")


def plain_environment() -> dict[str, str]:
    """Return an environment without anybody's PG* or LC_* variables."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
