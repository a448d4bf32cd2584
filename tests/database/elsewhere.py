"""Other people's servers, played on loopback: they record what came and answer as told."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reliability.outbound import Guard
from reliability.outbound import client as outbound_client
from reliability.outbound.addresses import networks


@dataclass(frozen=True)
class Heard:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Says:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Elsewhere:
    url: str
    heard: list[Heard] = field(default_factory=list)


def allow_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count loopback among our own networks, as a deployment may by its settings."""
    rules = Guard(allowed=networks(["127.0.0.0/8"]))
    monkeypatch.setattr(outbound_client, "guard", lambda: rules)


@contextmanager
def serving(answer: Callable[[Heard], Says]) -> Iterator[Elsewhere]:
    """Answer every request by ``answer``; yield the address and what was heard."""
    place = Elsewhere("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            names = {name.lower(): value for name, value in self.headers.items()}
            heard = Heard(self.command, self.path, names, self.rfile.read(size))
            place.heard.append(heard)
            said = answer(heard)
            self.send_response(said.status)
            for name, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        do_GET = do_POST  # noqa: N815 - the base class names it

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silence() -> Iterator[Elsewhere]:
    """Take connections and never say a word; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Elsewhere(f"http://127.0.0.1:{server.getsockname()[1]}")
