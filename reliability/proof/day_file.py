"""A day of events from a file instead of an invented one: JSON lines, read strictly."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reliability.claim.body import load, member
from reliability.claim.signatures import key_error
from reliability.proof.cast import SOURCES, StoryEvent
from reliability.proof.story import Story

LINES_MAX = 100_000
LINE_BYTES_MAX = 1_048_576
BY_SCHEME = {source.scheme: source for source in SOURCES}
HEADERS = {"Content-Type": "application/json"}


class DayRefused(Exception):
    """The file is no day of events; the words name the line and what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class FileDay(Story):
    """A day whose events are given: orders and repeats are drawn from the seed as ever."""

    given: tuple[StoryEvent, ...]

    @cached_property
    def plan(self) -> tuple[StoryEvent, ...]:
        """Every event of the file, in its order."""
        return self.given


def read_day(path: Path, *, kinds: Collection[str] | None) -> tuple[StoryEvent, ...]:
    """Read the events of a file; ``kinds`` are those that may stand there, ``None`` for any.

    Each line is ``{"scheme": …, "body": {"id": …, "type": …, …}}``: one of the story's schemes, and
    the body that its provider would send. At most 100 000 lines of 1 MiB. Raises ``DayRefused``.
    """
    events: dict[tuple[str, str], StoryEvent] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            event = _event(line, kinds)
        except ValueError as err:
            raise DayRefused(f"{path.name}, line {number}: {err}.") from None
        if events.setdefault((event.scheme, event.key), event) is not event:
            raise DayRefused(f"{path.name}, line {number}: {event.key!r} stands there twice.")
    if not events:
        raise DayRefused(f"{path.name} holds no event.")
    return tuple(events.values())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number > LINES_MAX or len(line) > LINE_BYTES_MAX:
                    raise DayRefused(f"{path.name}, line {number}: too many, or too long.")
                yield line
    except OSError as err:
        raise DayRefused(f"{path} cannot be read: {err.strerror}.") from None


def _event(line: bytes, kinds: Collection[str] | None) -> StoryEvent:
    match load(line):
        case {
            "scheme": str(scheme),
            "body": {"id": str(key), "type": str(event_type)},
            **rest,
        }:
            more = sorted(map(str, rest))
        case _:
            raise ValueError(
                "it is no object of a scheme and a body with texts as id and type"
            )
    if more:
        raise ValueError(f"it has more than scheme and body: {', '.join(more)}")
    source = BY_SCHEME.get(scheme)
    if source is None:
        raise ValueError(f"scheme {scheme!r} is none of {', '.join(sorted(BY_SCHEME))}")
    if wrong := key_error(key) or key_error(event_type):
        raise ValueError(f"its id or type is {wrong}")
    event = StoryEvent(
        source=source.name, scheme=source.scheme, key=key, event_type=event_type,
        body=member(line, "body") or b"", headers=HEADERS, operation=None,
    )  # fmt: skip
    if kinds is not None and event.kind not in kinds:
        raise ValueError(f"nobody here works {event.kind!r}")
    return event
