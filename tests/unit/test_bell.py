"""The bell: the first ring goes out at once, and a flood of events is no flood of messages."""

import os
import time
from collections.abc import Iterator
from unittest import mock

import pytest

from reliability import dispatch


class Clock:
    """A clock that moves when the test says so."""

    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with mock.patch("reliability.dispatch.time", clock):
        yield clock


@pytest.fixture
def sent() -> Iterator[mock.Mock]:
    with mock.patch("reliability.dispatch.current_app.send_task") as send:
        yield send


@pytest.fixture
def bell() -> dispatch._Bell:
    """A bell whose thread is the test."""
    return dispatch._Bell(thread=mock.Mock())


def waited(bell: dispatch._Bell, clock: Clock) -> float:
    """Let the wait of those who rang pass, and return how long it was."""
    seconds = bell.ring_for_those_who_wait() or 0
    clock.now += seconds
    bell.ring_for_those_who_wait()
    return round(seconds, 4)


def test_the_first_ring_goes_out_at_once_and_those_that_follow_go_out_together(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    for _ in range(10):
        bell.ring("local")
    assert sent.call_count == 1
    assert waited(bell, clock) == 0.005
    assert sent.call_count == 2


def waits(bell: dispatch._Bell, clock: Clock, *, rings: int) -> list[float]:
    """Ring so many times within each of five waits, and return how long those were."""
    bell.ring("local")
    found = []
    for _ in range(5):
        for _ in range(rings):
            bell.ring("local")
        found.append(waited(bell, clock))
    return found


def test_while_many_ring_the_waits_grow_to_40_ms_and_no_ring_is_lost(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    assert waits(bell, clock, rings=9) == [0.005, 0.01, 0.02, 0.04, 0.04]
    assert sent.call_count == 6


def test_one_that_rings_for_many_jobs_counts_as_many(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    bell.ring("local", 9)
    bell.ring("local", 9)
    assert waited(bell, clock) == 0.005
    bell.ring("local")
    assert waited(bell, clock) == 0.01
    assert sent.call_count == 3


def test_after_a_burst_the_waits_are_short_again_at_100_a_second(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    assert waits(bell, clock, rings=9)[-1] == 0.04
    for _ in range(4):  # in the 40 ms that the burst left behind
        bell.ring("local")
    assert waited(bell, clock) == 0.04
    bell.ring("local")
    assert waited(bell, clock) == 0.005
    assert sent.call_count == 8


def test_where_few_ring_none_waits_longer_than_5_ms(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    assert waits(bell, clock, rings=1) == [0.005] * 5
    assert sent.call_count == 6


def test_after_a_silence_the_next_ring_goes_out_at_once_again(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    bell.ring("local")
    clock.now += 0.005
    bell.ring("local")
    assert sent.call_count == 2


def test_queues_wait_for_themselves_alone(
    sent: mock.Mock, bell: dispatch._Bell, clock: Clock
) -> None:
    bell.ring("local")
    bell.ring("outside")
    bell.ring("outside")
    assert waited(bell, clock) == 0.005
    assert [call.kwargs["queue"] for call in sent.call_args_list] == [
        "local", "outside", "outside",
    ]  # fmt: skip


def test_a_thread_rings_for_those_who_wait(sent: mock.Mock) -> None:
    bell = dispatch._Bell()
    bell.ring("local")
    bell.ring("local")
    until = time.monotonic() + 5
    while sent.call_count < 2 and time.monotonic() < until:
        time.sleep(0.001)
    assert sent.call_count == 2


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("clock")
def test_a_forked_process_has_a_bell_of_its_own(sent: mock.Mock) -> None:
    with mock.patch("reliability.dispatch._bell", dispatch._Bell(thread=mock.Mock())):
        dispatch.ring("local")
        dispatch.ring("local")
        if (child := os.fork()) == 0:
            dispatch.ring("local")
            os._exit(sent.call_count)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
