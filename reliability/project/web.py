"""A web worker whose threads no slow client can hold."""

import errno
import socket
import time
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

RECEIVE_SECONDS = 10.0
SEND_SECONDS = 10.0


class DeadlineSocket:
    """A client's socket that gives head and body together `RECEIVE_SECONDS` to arrive.

    A time-out per read would not do: one byte a second would renew it for ever.
    """

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._deadline = 0.0

    def start_clock(self) -> None:
        """Begin a request."""
        self._deadline = time.monotonic() + RECEIVE_SECONDS

    def recv(self, size: int) -> bytes:
        """Receive what has come, within what is left of the request's time."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _too_slow()
        self._client.settimeout(left)
        try:
            return self._client.recv(size)
        except TimeoutError:
            raise _too_slow() from None

    def sendall(self, data: bytes) -> None:
        """Send one piece of the answer within `SEND_SECONDS`."""
        self._client.settimeout(SEND_SECONDS)
        try:
            self._client.sendall(data)
        except TimeoutError:
            raise _too_slow() from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class DeadlineWorker(ThreadWorker):
    """Gunicorn's threads with a deadline for every client."""

    def handle(self, conn: Any) -> Any:
        """Serve one request; close the connection here when it ends.

        The base closes it in the thread that accepts, where a client that keeps its own side
        open would stop everybody for two seconds.
        """
        if not isinstance(conn.sock, DeadlineSocket):
            conn.sock = DeadlineSocket(conn.sock)
        conn.sock.start_clock()
        keep = super().handle(conn)
        if keep is False:
            conn.close(graceful=True)
        return keep


def _too_slow() -> ConnectionResetError:
    # Read as a client that went away: a line for debugging, not a traceback.
    return ConnectionResetError(errno.ECONNRESET, "the client was too slow")
