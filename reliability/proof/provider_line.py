"""A worker thread's line to the fake provider: one connection, kept alive, on a deadline."""

import json
import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from reliability.errors import PermanentError, RetryLater

SINK_VARIABLE = "RELIABILITY_SINK"
"""Where the counters' HTTP door answers, such as http://127.0.0.1:4567."""
ANSWER_SECONDS = 1.5
PASSING = {HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}

_thread = threading.local()


class ProviderUnavailable(Exception):
    """The provider said that it cannot answer now."""


def post(path: str, *, key: str, parameters: Mapping[str, Any]) -> Any:
    """Ask for one effect under an idempotency key and return what the provider answers.

    Raises an error worth another attempt when nothing came back or the provider is down, and
    ``PermanentError`` when it refused.
    """
    connection = _connection()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    try:
        connection.request("POST", path, json.dumps(parameters), headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, HTTPException):
        connection.close()  # the next request opens it again
        raise
    return _judged(response.status, content)


def hang_up() -> None:
    """Close this thread's line; the next request opens it again."""
    if found := getattr(_thread, "connection", None):
        found.close()


def _connection() -> HTTPConnection:
    found = getattr(_thread, "connection", None)
    if not isinstance(found, HTTPConnection):
        where = urlsplit(os.environ[SINK_VARIABLE])
        found = HTTPConnection(where.hostname or "", where.port, timeout=ANSWER_SECONDS)
        _thread.connection = found
    return found


def _judged(status: int, content: bytes) -> Any:
    if status == HTTPStatus.OK:
        return json.loads(content)
    words = content.decode(errors="replace")[:200]
    if status in PASSING:
        raise RetryLater(timedelta(milliseconds=200), words)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ProviderUnavailable(f"the provider answered {status}: {words}")
    raise PermanentError(f"the provider refused with {status}: {words}")
