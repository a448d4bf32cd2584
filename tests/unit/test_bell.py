"""The bell: the first ring goes out at once, and a flood of events is no flood of messages."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pytest

from reliability import dispatch


class Timer:
    """A timer that fires when the test says so."""

    pending: "list[Timer]" = []
    daemon = False

    def __init__(
        self, seconds: float, then: Callable[..., None], given: Sequence[Any]
    ) -> None:
        self.seconds, self._then, self._given = seconds, then, given

    def start(self) -> None:
        self.pending.append(self)

    def fire(self) -> float:
        self.pending.remove(self)
        self._then(*self._given)
        return self.seconds


@pytest.fixture
def sent() -> Iterator[mock.Mock]:
    Timer.pending.clear()
    with (
        mock.patch("reliability.dispatch.threading.Timer", Timer),
        mock.patch("reliability.dispatch.current_app.send_task") as send,
    ):
        yield send


def test_the_first_ring_goes_out_at_once_and_those_that_follow_go_out_together(
    sent: mock.Mock,
) -> None:
    bell = dispatch._Bell()
    for _ in range(10):
        bell.ring("local")
    assert sent.call_count == 1
    assert Timer.pending[0].fire() == 0.005
    assert sent.call_count == 2


def waits(bell: Any, *, rings: int) -> list[float]:
    """Ring so many times within each of five waits, and return how long those were."""
    bell.ring("local")
    waited = []
    for _ in range(5):
        for _ in range(rings):
            bell.ring("local")
        waited.append(Timer.pending[0].fire())
    return waited


def test_while_many_ring_the_waits_grow_to_40_ms_and_no_ring_is_lost(sent: mock.Mock) -> None:
    assert waits(dispatch._Bell(), rings=9) == [0.005, 0.01, 0.02, 0.04, 0.04]
    assert sent.call_count == 6


def test_after_a_burst_the_waits_are_short_again_at_100_a_second(sent: mock.Mock) -> None:
    bell = dispatch._Bell()
    assert waits(bell, rings=9)[-1] == 0.04
    for _ in range(4):  # in the 40 ms that the burst left behind
        bell.ring("local")
    assert Timer.pending[0].fire() == 0.04
    bell.ring("local")
    assert Timer.pending[0].fire() == 0.005


def test_where_few_ring_none_waits_longer_than_5_ms(sent: mock.Mock) -> None:
    assert waits(dispatch._Bell(), rings=1) == [0.005] * 5
    assert sent.call_count == 6


def test_after_a_silence_the_next_ring_goes_out_at_once_again(sent: mock.Mock) -> None:
    bell = dispatch._Bell()
    bell.ring("local")
    Timer.pending[0].fire()
    assert (sent.call_count, Timer.pending) == (1, [])
    bell.ring("local")
    assert sent.call_count == 2
    assert Timer.pending[0].seconds == 0.005
