"""When a worker counts as deaf, and that its watch outlives what it cannot ask."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from reliability import hearing


class OverError(Exception):
    """Ends the endless watch of a test."""


class Pause:
    """Lets a watch look a number of times without waiting."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def wait(self, _: float) -> bool:
        if not self.left:
            raise OverError
        self.left -= 1
        return False


@pytest.fixture
def called() -> list[Callable[[], None]]:
    return []


@pytest.fixture
def consumer(called: list[Callable[[], None]]) -> Any:
    queues = SimpleNamespace(consume_from=["local"])
    app = SimpleNamespace(
        amqp=SimpleNamespace(queues=queues), connection_for_read=lambda: None
    )
    return SimpleNamespace(app=app, call_soon=called.append)


def watch(consumer: Any, monkeypatch: pytest.MonkeyPatch, *seen: Any) -> None:
    """Let the watch see ``seen``, look by look; an exception among them is raised."""
    told: Iterator[int | Exception | None] = iter(seen)

    def unheard(*_: Any) -> int | None:
        found = next(told)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("reliability.hearing.threading.Event", lambda: Pause(len(seen)))
    monkeypatch.setattr(hearing, "_unheard", unheard)
    with pytest.raises(OverError):
        hearing._watch(consumer)


def test_messages_that_wait_while_nothing_is_started_twice_are_a_deaf_worker(
    consumer: Any, called: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(consumer, monkeypatch, 7, 7)
    (connect,) = called
    with pytest.raises(ConnectionResetError):
        connect()


@pytest.mark.parametrize("seen", [(7, 8), (7, None, 7), (None, None), (7,)])
def test_a_worker_that_starts_something_or_misses_nothing_hears(
    seen: tuple[int | None, ...],
    consumer: Any,
    called: list[Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch(consumer, monkeypatch, *seen)
    assert called == []


def test_a_watch_that_cannot_ask_looks_again(
    consumer: Any, called: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(consumer, monkeypatch, ValueError("no answer of a kind that is known"), 7, 7)
    assert len(called) == 1
