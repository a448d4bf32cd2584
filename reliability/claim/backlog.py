"""Events that did not come through the door: files and lists, taken in by the same claim."""

import base64
import binascii
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from django.utils import timezone

from reliability.claim.accept import Asked, claim
from reliability.claim.body import JsonValue, Unparseable, load
from reliability.claim.certificates import trust
from reliability.claim.door import Door, door
from reliability.claim.route import route
from reliability.claim.signatures import Refused, identities, verify
from reliability.errors import TryAgain
from reliability.models import Receipt, Source

BATCH = 100
TRIES = 5
ENVELOPE = {"headers", "body", "body_base64", "received_at"}


@dataclass(frozen=True)
class TakenIn:
    """Events by what became of them; ``refused`` counts lines that were not authenticated."""

    accepted: int = 0
    duplicate: int = 0
    absorbed: int = 0
    conflict: int = 0
    letters: int = 0
    """Of those accepted: what can only be a dead letter."""
    refused: int = 0

    def __add__(self, other: "TakenIn") -> "TakenIn":
        names = [one.name for one in fields(self)]
        return TakenIn(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Recorded:
    """A delivery as somebody kept it: its body, the headers it came with, and when."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    received_at: datetime | None = None


def take_in(
    source: Source, recorded: Iterable[Recorded], *, trusted: bool
) -> Iterator[TakenIn]:
    """Claim recorded deliveries, a hundred events at a time, and yield what became of each lot.

    Not ``trusted``: each is verified by its own headers as of the time it was received. Trusted
    ones are taken at the word of whoever asks. Keys, operations and age are judged as at the
    door, so that what is there already stays one. Raises ``TryAgain`` when the database cannot
    take a lot after five tries; what was yielded before stands.
    """
    entry = door(source.endpoint_token)
    if entry is None:
        raise ValueError(f"{source.slug} is no source with a door")
    waiting: list[Asked] = []
    for one in recorded:
        asked = _asked(entry, one, trusted=trusted)
        if asked is None:
            yield TakenIn(refused=1)
            continue
        waiting += asked
        if len(waiting) >= BATCH:
            yield _claim(source, waiting)
            waiting = []
    if waiting:
        yield _claim(source, waiting)


def read_line(line: bytes) -> Recorded:
    """Read one line of a file: a bare body, or an object of headers, body and received_at.

    ``body`` is text, ``body_base64`` bytes that are no text. Anything else is a bare body.
    """
    bare = Recorded(line.strip())
    try:
        found = load(bare.body)
    except Unparseable:
        return bare
    if not isinstance(found, dict) or not set(found) <= ENVELOPE or "headers" not in found:
        return bare
    return _recorded(found) or bare


def _recorded(found: dict[str, JsonValue]) -> Recorded | None:
    headers, text, encoded = (found.get(name) for name in ("headers", "body", "body_base64"))
    if not isinstance(headers, dict):
        return None
    named = {name: value for name, value in headers.items() if isinstance(value, str)}
    received_at = _time(found.get("received_at"))
    if isinstance(encoded, str):
        try:
            return Recorded(base64.b64decode(encoded, validate=True), named, received_at)
        except binascii.Error:
            return None
    return Recorded(text.encode(), named, received_at) if isinstance(text, str) else None


def _time(value: JsonValue) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at and at.tzinfo else None


def _asked(entry: Door, one: Recorded, *, trusted: bool) -> list[Asked] | None:
    if len(one.body) > entry.body_bytes_max or not (trusted or _is_genuine(entry, one)):
        return None
    found = identities(
        entry.scheme.name, body=one.body, headers=one.headers, options=entry.source.options
    )
    return route(entry, found, body=one.body, headers=one.headers, now=timezone.now())


def _is_genuine(entry: Door, one: Recorded) -> bool:
    options: dict[str, Any] = dict(entry.source.options)
    if entry.scheme.needs_certificates:
        options |= trust(entry.source, one.headers)
    verdict = verify(
        entry.scheme.name,
        body=one.body,
        headers=one.headers,
        secrets=[text for _, text in entry.secrets],
        url="",
        now=one.received_at or timezone.now(),
        options=options,
    )
    return not isinstance(verdict, Refused)


def _claim(source: Source, asked: list[Asked]) -> TakenIn:
    fates = _try(source, asked)
    dead = {event.key for event in asked if event.buried}
    counted = dict.fromkeys(Receipt.Verdict.values, 0)
    letters = 0
    for fate, key in zip(fates, {event.key: None for event in asked}, strict=True):
        counted[fate.verdict] += 1
        letters += fate.verdict == Receipt.Verdict.ACCEPTED and key in dead
    return TakenIn(**counted, letters=letters)


def _try(source: Source, asked: list[Asked]) -> Any:
    for number in range(TRIES - 1):
        try:
            return claim(source, asked)
        except TryAgain:
            time.sleep(0.1 * 2**number)
    return claim(source, asked)
