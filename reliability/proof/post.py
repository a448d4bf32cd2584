"""Send deliveries through the real door as providers do: signed, in parallel, again if need be."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

from reliability.proof.cast import StoryDelivery
from reliability.proof.signing import signed_headers

SENDERS = 8
ANSWER_SECONDS = 15.0
AGAIN_WITHIN_SECONDS = 60.0
WAIT_FIRST, WAIT_MAX = 0.1, 2.0
NO_ANSWER = 0


@dataclass(frozen=True)
class Address:
    """Where one source's events go, and what they are signed with."""

    path: str
    secret: str


@dataclass(frozen=True)
class Answered:
    """How one delivery ended; `before` are the statuses of earlier tries, 0 for no answer."""

    delivery: StoryDelivery
    status: int
    said: str
    before: tuple[int, ...] = ()

    @property
    def taken(self) -> bool:
        """Tell whether the door promised that it has the event."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


class Sender:
    """Sends as the story's providers would: whatever is not taken is sent again for a minute."""

    def __init__(self, port: int, addresses: Mapping[str, Address]) -> None:
        self._port = port
        self._addresses = addresses
        self._lines = threading.local()
        self._opened: list[HTTPConnection] = []

    def close(self) -> None:
        """Close every connection; sending opens them again."""
        for line in self._opened:
            line.close()

    def send_all(
        self, deliveries: Sequence[StoryDelivery], told: Callable[[Answered], None]
    ) -> list[Answered]:
        """Send everything in this order, eight at a time; `told` hears of each, in any thread."""

        def send(delivery: StoryDelivery) -> Answered:
            answered = self.send(delivery)
            told(answered)
            return answered

        with closing(self), ThreadPoolExecutor(SENDERS) as senders:
            return list(senders.map(send, deliveries))

    def send(self, delivery: StoryDelivery) -> Answered:
        """Send one delivery until it is taken, refused for good, or a minute is over."""
        until = time.monotonic() + AGAIN_WITHIN_SECONDS
        wait, before = WAIT_FIRST, list[int]()
        while True:
            status, said = self._try(delivery)
            again = status == NO_ANSWER or status >= HTTPStatus.INTERNAL_SERVER_ERROR
            if not again or time.monotonic() > until:
                return Answered(delivery, status, said, tuple(before))
            before.append(status)
            time.sleep(wait)
            wait = min(wait * 2, WAIT_MAX)

    def _try(self, delivery: StoryDelivery) -> tuple[int, str]:
        address = self._addresses[delivery.event.source]
        now = datetime.now(UTC)
        headers = signed_headers(delivery, secret=address.secret, now=now)
        line = self._line()
        try:
            line.request("POST", address.path, delivery.body, headers)
            response = line.getresponse()
            content = response.read()
        except (OSError, HTTPException):
            line.close()  # the next request opens it again
            return NO_ANSWER, ""
        return response.status, _status_word(content)

    def _line(self) -> HTTPConnection:
        found = getattr(self._lines, "line", None)
        if not isinstance(found, HTTPConnection):
            found = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
            self._lines.line = found
            self._opened.append(found)
        return found


def _status_word(content: bytes) -> str:
    try:
        facts: Any = json.loads(content)
    except ValueError:
        return ""
    return str(facts.get("status", "")) if isinstance(facts, dict) else ""
