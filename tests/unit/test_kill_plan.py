"""Kills are random, and the same for the same seed."""

from reliability.proof.faults import plan


def test_the_plan_of_kills_is_the_same_for_its_seed_and_in_order() -> None:
    kills = plan(3, kills=20, replays=3, deliveries=50)
    assert kills == plan(3, kills=20, replays=3, deliveries=50)
    assert kills != plan(4, kills=20, replays=3, deliveries=50)
    assert [(kill.replay, kill.after) for kill in kills] == sorted(
        (kill.replay, kill.after) for kill in kills
    )
    assert all(1 <= kill.after <= 50 and 0 <= kill.replay < 3 for kill in kills)


def test_one_kill_in_five_takes_a_whole_group() -> None:
    kills = plan(1, kills=2000, replays=3, deliveries=50)
    assert 340 < sum(kill.whole_group for kill in kills) < 460


def test_a_single_replay_gets_every_kill() -> None:
    assert {kill.replay for kill in plan(1, kills=30, replays=1, deliveries=5)} == {0}


def test_half_come_while_jobs_run_and_the_first_right_after_an_effect() -> None:
    kills = plan(1, kills=2000, replays=3, deliveries=50)
    assert 940 < sum(kill.moment == "effect" for kill in kills) < 1060
    assert {kill.moment for kill in kills} == {"busy", "effect"}
    for seed in range(20):
        first = plan(seed, kills=1, replays=3, deliveries=50)[0]
        assert (first.replay, first.moment) == (0, "effect")


def test_no_kills_is_a_plan_too() -> None:
    assert plan(1, kills=0, replays=1, deliveries=5) == []
