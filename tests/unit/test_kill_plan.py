"""What goes wrong is random, and the same for the same seed."""

from collections import Counter
from datetime import date

from reliability.killing import Point
from reliability.management.trial import Terms
from reliability.proof.plan import POINTS, Fault, Kill, Strike, of_replay, plan, strikes

TERMS = Terms(seed=3, events=60, replays=3, kills=12, faults=tuple(Fault))
DAY = date(2026, 11, 29)


def test_the_plan_of_kills_is_the_same_for_its_seed_and_in_order() -> None:
    kills = plan(3, kills=20, replays=3, deliveries=50)
    assert kills == plan(3, kills=20, replays=3, deliveries=50)
    assert kills != plan(4, kills=20, replays=3, deliveries=50)
    assert [(kill.replay, kill.after) for kill in kills] == sorted(
        (kill.replay, kill.after) for kill in kills
    )
    assert all(1 <= kill.after <= 50 and 0 <= kill.replay < 3 for kill in kills)


def test_the_same_terms_are_the_same_events_in_the_same_order_and_the_same_troubles() -> None:
    again = Terms(seed=3, events=60, replays=3, kills=12, faults=tuple(Fault))
    story, other = TERMS.story(DAY), again.story(DAY)
    for replay in range(3):
        sent = [(one.event.key, one.body) for one in story.deliveries(replay)]
        assert sent == [(one.event.key, one.body) for one in other.deliveries(replay)]
    assert TERMS.kills_of(78) == again.kills_of(78)
    assert TERMS.strikes_of(78) == again.strikes_of(78)
    orders = {tuple(one.event.key for one in story.deliveries(n)) for n in range(3)}
    assert len(orders) == 3


def test_the_plan_of_a_seed_is_this_one_whatever_machine_draws_it() -> None:
    kills = plan(1, kills=6, replays=2, deliveries=50)
    assert [(k.replay, k.after, k.moment, k.point) for k in kills] == [
        (0, 5, "effect", ""),
        (0, 7, "effect", ""),
        (0, 12, "point", "worker.amid-batch"),
        (0, 12, "point", "sweep.rescued"),
        (0, 28, "busy", ""),
        (0, 48, "busy", ""),
    ]


def test_one_random_kill_in_five_takes_a_whole_group() -> None:
    kills = plan(1, kills=3000, replays=3, deliveries=50)
    random = [kill for kill in kills if not kill.point]
    assert 340 < sum(kill.whole_group for kill in random) < 460
    assert not any(kill.whole_group for kill in kills if kill.point)


def test_a_single_replay_gets_every_kill() -> None:
    assert {kill.replay for kill in plan(1, kills=30, replays=1, deliveries=5)} == {0}


def test_half_of_the_random_ones_come_while_jobs_run_and_the_first_right_after_an_effect() -> (
    None
):
    kills = [kill for kill in plan(1, kills=3000, replays=3, deliveries=50) if not kill.point]
    assert 940 < sum(kill.moment == "effect" for kill in kills) < 1060
    assert {kill.moment for kill in kills} == {"busy", "effect"}
    for seed in range(20):
        first = plan(seed, kills=3, replays=3, deliveries=50)[0]
        assert (first.replay, first.moment, first.point) == (0, "effect", "")


def test_a_third_of_the_kills_is_at_points_and_all_of_them_come_equally_often() -> None:
    kills = plan(5, kills=270, replays=3, deliveries=500)
    points = Counter(kill.point for kill in kills if kill.moment == "point")
    assert points == dict.fromkeys(POINTS, 10)
    assert not any(kill.replay for kill in kills if kill.point not in {"", Point.CLAIMED})
    left_out = {Point.MARKED, Point.ANSWERED, Point.RELEASING, Point.REQUEUED}
    assert set(Point) - set(POINTS) == left_out


def test_each_fault_strikes_in_the_first_replay_and_once_more() -> None:
    drawn = strikes(2, [Fault.BROKER, Fault.SIGSTOP, Fault.CLOCK], replays=3, deliveries=50)
    assert drawn == strikes(
        2, [Fault.CLOCK, Fault.SIGSTOP, Fault.BROKER], replays=3, deliveries=50
    )
    assert Counter(one.fault for one in drawn) == {Fault.BROKER: 2, Fault.SIGSTOP: 2}
    assert {one.fault for one in drawn if one.replay == 0} == {Fault.BROKER, Fault.SIGSTOP}
    assert all(1 <= one.after <= 50 and one.replay < 3 for one in drawn)


def test_kills_and_faults_of_a_replay_come_in_the_order_of_its_deliveries() -> None:
    kills = [
        Kill(replay=0, after=9, whole_group=False),
        Kill(replay=1, after=2, whole_group=False),
    ]
    struck = [Strike(replay=0, after=4, fault=Fault.BROKER)]
    assert of_replay(0, kills, struck) == [struck[0], kills[0]]
    assert of_replay(1, kills, struck) == [kills[1]]


def test_no_kills_is_a_plan_too() -> None:
    assert plan(1, kills=0, replays=1, deliveries=5) == []
