"""A proof is told so that a person can read where and when it struck."""

from typing import Any

from reliability.management.proof_words import by_point, by_second, plot, seconds_plot, table

EFFECT = {"kind": "stripe.charge.succeeded", "key": "evt_1", "where": "before its effect"}
BETWEEN = EFFECT | {"where": "between effect and completion"}


def kill(second: float, **facts: Any) -> dict[str, Any]:
    planned = {"replay": 0, "after": 9, "whole_group": False, "moment": "busy", "point": ""}
    found = {"kill": planned, "target": "pool child of jobs-1", "pids": [7], "hit": []}
    return found | {"point": "", "second": second} | facts


NAMED = kill(
    2.5,
    point="worker.unfinished",
    target="process 7",
    hit=[BETWEEN],
    kill={"replay": 1, "after": 30, "moment": "point", "point": "worker.unfinished"},
)
MISSED = kill(
    8.9, kill={"replay": 1, "after": 31, "moment": "point", "point": "sweep.rescued"}
)
KILLS = [kill(0.4, hit=[EFFECT, BETWEEN]), kill(0.9, hit=[EFFECT]), NAMED, MISSED]
FAULT = {
    "strike": {"replay": 0, "after": 12, "fault": "broker"},
    "did": "the broker restarted",
    "hit": [],
    "second": 1.5,
}


def test_kills_are_counted_by_where_they_ended_a_process() -> None:
    assert by_point(KILLS) == {
        "at random: between effect and completion": 1,
        "at random: before its effect": 1,
        "worker.unfinished": 1,
        "at random: no job ran there": 1,
    }


def test_kills_are_counted_by_the_second_of_the_run() -> None:
    assert by_second(KILLS) == {0: 2, 2: 1, 8: 1}


def test_the_table_has_a_line_for_each_kill_and_fault_in_the_order_of_the_run() -> None:
    head, *lines = table(KILLS, [FAULT])
    assert head.split() == ["second", "replay", "delivery", "what", "where", "hit"]
    assert [line.split()[0] for line in lines] == ["0.4", "0.9", "1.5", "2.5", "8.9"]
    assert "fault broker" in lines[2]
    assert lines[2].endswith("the broker restarted")
    assert "worker.unfinished" in lines[3]
    assert lines[3].endswith("1 running between effect and completion")
    assert "at random: nobody reached sweep.rescued" in lines[4]
    assert lines[4].endswith("no running job")


def test_a_plot_draws_the_longest_bar_40_characters_long() -> None:
    assert plot("kills", {"here": 80, "at the door": 20, "once": 1}) == [
        "",
        "kills",
        f"       here  {'#' * 40} 80",
        f"at the door  {'#' * 10} 20",
        "       once  # 1",
    ]
    assert plot("kills", {}) == []


def test_a_long_run_is_drawn_in_at_most_24_rows_with_its_empty_seconds() -> None:
    short = seconds_plot({0: 2, 2: 1})
    assert short[1] == "kills by second of the run (1 s a row)"
    assert [line.split()[0] for line in short[2:]] == ["0", "1", "2"]
    assert short[3].split() == ["1", "0"]
    long = seconds_plot({0: 2, 47: 1})
    assert long[1] == "kills by second of the run (2 s a row)"
    assert len(long) == 2 + 24


def test_nothing_that_struck_is_no_table() -> None:
    assert table([], []) == seconds_plot({}) == []
