"""The web server as `up` runs it, over a real socket, on the tests' database."""

import base64
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from reliability.embedded import programs
from reliability.embedded.place import free_port
from tests.database.live_app import VARIABLE
from tests.database.senders import CERTIFICATE_URL, authority

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30


@dataclass(frozen=True)
class Web:
    port: int
    log: Path

    def send(self, *pieces: bytes, seconds: float = 15) -> bytes:
        """Send raw bytes on a connection of its own and return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as client:
            try:
                for piece in pieces:
                    client.sendall(piece)
            except OSError:
                pass  # it answered and closed before it had all; the answer is what counts
            return _all(client)

    def assert_quiet(self) -> None:
        """Fail if the server has logged an error of ours so far."""
        said = self.log.read_text()
        assert "Traceback" not in said, said
        assert "Internal Server Error" not in said, said

    def post(self, path: str, body: bytes, headers: dict[str, str | bytes]) -> int:
        """Post a body with its length and return the status."""
        return status(self.send(head("POST", path, body, headers) + body))


def head(method: str, path: str, body: bytes, headers: dict[str, str | bytes]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost", b"Connection: close"]
    named = {"Content-Length": str(len(body)), **headers}
    for name, value in named.items():
        if value != "":
            text = value if isinstance(value, bytes) else value.encode("latin-1", "replace")
            lines.append(name.encode("latin-1", "replace") + b": " + text)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def status(answer: bytes) -> int:
    """Return the final status of an answer; 0 where the connection was cut without one."""
    answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def _all(client: socket.socket) -> bytes:
    heard = b""
    try:
        while piece := client.recv(65_536):
            heard += piece
    except OSError:
        pass
    return heard


@contextmanager
def serving(log: Path) -> Iterator[Web]:
    """Run the web program of the deployment until the block ends."""
    web = Web(free_port(0), log)
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, *programs.web(web.port).arguments],
            cwd=ROOT, env=environment(), stdout=out, stderr=out,
        )  # fmt: skip
    try:
        _wait(web, server)
        yield web
    finally:
        server.terminate()
        server.wait()


@contextmanager
def working(log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a worker of local jobs, one process, until the block ends."""
    options = ["--pool=solo", "--queues=local", "--hostname=one@%h", *programs.QUIET]
    with log.open("wb") as out:
        worker = subprocess.Popen(
            [sys.executable, *programs.CELERY, "worker", *options],
            cwd=ROOT, env=environment() | {"RELIABILITY_PROCESS": "worker"},
            stdout=out, stderr=out,
        )  # fmt: skip
    try:
        yield worker
    finally:
        worker.terminate()
        worker.wait(START_SECONDS)


def environment() -> dict[str, str]:
    """Address the tests' database, with the key ring that sealed its secrets."""
    database = connection.settings_dict
    ring = settings.RELIABILITY_KEY_RING.items()
    login = f"{database['USER']}:{database['PASSWORD']}"
    where = f"{database['HOST'] or '127.0.0.1'}:{database['PORT'] or 5432}"
    return os.environ | {
        "DATABASE_URL": f"postgresql://{login}@{where}/{database['NAME']}",
        "BROKER_URL": settings.CELERY_BROKER_URL,
        "SECRET_KEY": secrets.token_urlsafe(48),
        "RELIABILITY_KEY_RING": ",".join(
            f"{name}:{base64.b64encode(key).decode()}" for name, key in ring
        ),
        "RELIABILITY_PROCESS": "web",
        VARIABLE: f"{CERTIFICATE_URL} {base64.b64encode(authority().leaf).decode()}",
        "DJANGO_SETTINGS_MODULE": "tests.database.live_settings",
    }


def _wait(web: Web, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            if status(web.send(head("GET", "/hooks/none/", b"", {}))) in {404, 405}:
                return
        except ConnectionRefusedError:
            pass
        time.sleep(0.05)
    raise AssertionError(web.log.read_text())
