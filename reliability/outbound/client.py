"""An HTTP client that connects only to the addresses it judged, and never waits for long."""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from reliability.conf import conf
from reliability.errors import AddressRefused, NoAnswer
from reliability.outbound.addresses import is_within
from reliability.outbound.guard import Guard, Target, guard, judge

PIECE_BYTES = 16_384


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request. ``time`` bounds it as a whole; of the answer ``bytes_max`` are read."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    time: timedelta | None = None
    bytes_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back. ``cut`` says that the body went on; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool


def check(url: str, rules: Guard | None = None) -> None:
    """Judge a URL before it is saved. Raises ``AddressRefused`` or ``NoAnswer``."""
    judge(url, rules or guard())


def check_own(url: str, rules: Guard | None = None) -> None:
    """Judge a URL that takes a provider's place: it must lie in a network of our own.

    Raises ``AddressRefused`` or ``NoAnswer``.
    """
    used = rules or guard()
    target = judge(url, used)
    if not all(is_within(address, used.allowed) for address in target.addresses):
        raise AddressRefused(
            f"{target.host} is in no network of RELIABILITY['outbound_private_networks'], "
            "so no credential is sent there"
        )


def check_host(host: str, rules: Guard | None = None) -> None:
    """Judge a host that is spoken to in another protocol than HTTP.

    Raises ``AddressRefused`` or ``NoAnswer``.
    """
    judge(f"https://{host}/", rules or guard())


def send(request: Request, rules: Guard | None = None) -> Answer:
    """Send one request and return its answer, a redirect included: none is followed.

    The name is resolved and judged anew each time, and the connection goes to an address that
    was judged. Nothing of the environment (proxies, netrc) plays a part. Raises
    ``AddressRefused`` before anything is sent, ``NoAnswer`` when no status line came in time.
    """
    used = rules or guard()
    target = judge(request.url, used)
    until = time.monotonic() + (request.time or conf().outbound_time).total_seconds()
    connection = _Connection(target, used.tls, until)
    try:
        connection.request(
            request.method, target.path, body=request.body, headers=dict(request.headers)
        )
        return _read(connection, request.bytes_max or conf().outbound_answer_bytes_max)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"{target.host} did not answer: {_why(error)}") from None
    finally:
        connection.end()


def _read(connection: "_Connection", bytes_max: int) -> Answer:
    answer = connection.getresponse()
    body = bytearray()
    try:
        while len(body) <= bytes_max and (piece := answer.read1(PIECE_BYTES)):
            body += piece
        cut = len(body) > bytes_max
    except (OSError, http.client.HTTPException):
        cut = True  # the status is known; a body that stops short does not change it
    return Answer(
        status=answer.status,
        headers={name.lower(): value for name, value in answer.getheaders()},
        body=bytes(body[:bytes_max]),
        cut=cut,
    )


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "out of time"
    return type(error).__name__


class _Connection(http.client.HTTPConnection):
    """Connects to a judged address; host name and certificate stay those of the URL."""

    def __init__(self, target: Target, tls: ssl.SSLContext, until: float) -> None:
        super().__init__(target.host, target.port)
        if target.scheme == "https":
            self.default_port = http.client.HTTPS_PORT  # so that Host names no usual port
        self._target, self._tls, self._until = target, tls, until
        self._real: socket.socket | None = None

    def connect(self) -> None:
        plain = self._open()
        self._real = plain
        if self._target.scheme == "https":
            plain.settimeout(_left(self._until))
            self._real = self._tls.wrap_socket(plain, server_hostname=self._target.host)
        self.sock = _Timed(self._real, self._until)

    def _open(self) -> socket.socket:
        """Try the judged addresses in turn; the last one's failure is the failure."""
        *others, last = self._target.addresses
        for address in others:
            try:
                return self._dial(str(address))
            except OSError:
                continue
        return self._dial(str(last))

    def _dial(self, address: str) -> socket.socket:
        seconds = min(_left(self._until), conf().outbound_connect_time.total_seconds())
        return socket.create_connection((address, self._target.port), timeout=seconds)

    def end(self) -> None:
        self.close()
        if self._real is not None:
            self._real.close()


class _Timed:
    """A socket whose every operation gets what is left of the request's time."""

    def __init__(self, real: socket.socket, until: float) -> None:
        self._real, self._until = real, until

    def sendall(self, data: bytes) -> None:
        self._real.settimeout(_left(self._until))
        self._real.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._real, self._until))

    def close(self) -> None:
        """Leave the socket open for the answer that is still being read."""


class _Incoming(io.RawIOBase):
    def __init__(self, real: socket.socket, until: float) -> None:
        self._real, self._until = real, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._real.settimeout(_left(self._until))
        return self._real.recv_into(buffer)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("out of time")
    return left
