"""What is planned for a replay happens in order, at its delivery, and all of it."""

import threading
from dataclasses import dataclass

import pytest

from reliability.proof.timeline import AHEAD_MAX, Timeline

SECONDS = 20


@dataclass(frozen=True)
class Act:
    after: int


def test_each_act_is_done_once_so_many_deliveries_were_answered() -> None:
    answered, seen, done = 0, list[tuple[int, int]](), threading.Semaphore(0)

    def do(act: Act) -> int:
        seen.append((act.after, answered))
        done.release()
        return act.after

    with Timeline([Act(2), Act(5)], do) as timeline:
        for answered in range(1, 8):
            timeline.answered()
            if answered in {2, 5}:
                assert done.acquire(timeout=SECONDS)
    assert seen == [(2, 2), (5, 5)]
    assert timeline.log == [2, 5]


def test_what_has_not_come_up_by_the_end_comes_then() -> None:
    with Timeline([Act(2), Act(900)], lambda act: act.after) as timeline:
        timeline.answered()
    assert timeline.log == [2, 900]


def test_senders_wait_for_an_act_that_is_long_due() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def do(act: Act) -> None:
        begun.set()
        go_on.wait(SECONDS)

    with Timeline([Act(1)], do) as timeline:
        timeline.answered()
        assert begun.wait(SECONDS)
        for _ in range(AHEAD_MAX):
            timeline.answered()  # these go ahead
        late = threading.Thread(target=timeline.answered)
        late.start()
        late.join(0.05)
        held = late.is_alive()
        go_on.set()
        late.join(SECONDS)
    assert held
    assert not late.is_alive()


def test_a_failure_in_an_act_reaches_whoever_waits_for_the_timeline() -> None:
    def do(act: Act) -> None:
        raise LookupError(act.after)

    with pytest.raises(LookupError, match="3"), Timeline([Act(3), Act(4)], do):
        pass


def test_no_acts_are_a_timeline_too() -> None:
    with Timeline(list[Act](), lambda act: act.after) as timeline:
        timeline.answered()
    assert timeline.log == []
