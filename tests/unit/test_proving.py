"""A proof fails where nothing was proved: kills that hit nothing, faults that did nothing."""

from typing import Any

import pytest

from reliability.management.proving import Proof, judge
from reliability.management.trial import Terms, yesterday
from reliability.proof.plan import STRIKES, Fault
from reliability.proof.verdict import figures

Facts = dict[str, Any]
HELD: Facts = {
    "effect_names": 0, "repeated_effects": [], "effects_with_several_keys": [],
    "repeated_mails": [], "conservation": {"accepted": 3, "jobs": 3}, "lost": [], "refused": 0,
    "sent_again": 0, "left": 0, "digest": "d", "unknown_resolved": 0, "unknown_requeued": 0,
    "requests_by_status": {"200": 5, "429": 1}, "attempts_by_a_wrong_clock": 2,
}  # fmt: skip
JOB = {"kind": "k", "key": "e", "where": "between effect and completion"}


def kill(*, hit: bool = True, point: str = "", pids: tuple[int, ...] = (7,)) -> Facts:
    planned = {"replay": 0, "after": 1, "whole_group": False, "moment": "busy", "point": ""}
    jobs = [JOB] if hit else []
    return {
        "kill": planned, "target": "t", "pids": pids, "hit": jobs, "point": point, "second": 1.0,
    }  # fmt: skip


def struck(fault: Fault, *, did: str = "it did", hit: bool = False) -> Facts:
    planned = {"replay": 0, "after": 1, "fault": fault}
    return {"strike": planned, "did": did, "hit": [JOB] if hit else [], "second": 1.0}


def all_struck() -> list[Facts]:
    return [struck(fault, hit=fault is Fault.SIGSTOP) for fault in STRIKES for _ in range(2)]


def judged(terms: Terms, kills: list[Facts], faults: list[Facts], **replay: Any) -> Proof:
    told = figures(terms.story(yesterday()).expected())
    seen = told | HELD | {"effect_names": told["effects"]}
    control = {"replays": [seen]}
    found = {"kills": kills, "faults": faults, "cannot_redirect": []}
    return judge(terms, control, found | {"replays": [seen | replay]})


def failed(proof: Proof) -> list[str]:
    return [check.promise for group in proof.checks for check in group if not check.ok]


def terms(kills: int = 0, faults: tuple[Fault, ...] = ()) -> Terms:
    return Terms(seed=1, events=20, replays=1, kills=kills, faults=faults)


def test_kills_that_hit_and_faults_that_struck_are_a_proof() -> None:
    kills = [kill(point="worker.leased"), *(kill() for _ in range(8))]
    assert failed(judged(terms(9, tuple(Fault)), kills, all_struck())) == []


@pytest.mark.parametrize(
    ("kills", "promise"),
    [
        ([kill()], "every planned kill was carried out"),
        ([kill(), kill(pids=())], "every planned kill was carried out"),
    ],
)
def test_a_kill_that_was_planned_and_not_done_fails(kills: list[Facts], promise: str) -> None:
    assert failed(judged(terms(2), kills, [])) == [promise]


def test_kills_that_hit_no_running_job_prove_nothing() -> None:
    assert failed(judged(terms(1), [kill(hit=False)], [])) == [
        "a kill hit a running job",
        "a kill came between effect and completion",
    ]


def test_of_nine_kills_one_at_least_is_at_a_named_point() -> None:
    kills = [kill() for _ in range(9)]
    assert failed(judged(terms(9), kills, [])) == ["a process ended at a named point"]


def test_a_state_unlike_that_of_the_unfaulted_run_fails() -> None:
    assert failed(judged(terms(), [], [], digest="e")) == [
        "replay 1: the state of an unfaulted run"
    ]


@pytest.mark.parametrize(
    ("faults", "replay", "promise"),
    [
        (all_struck()[1:], {}, "every planned fault struck"),
        (
            [struck(Fault.BROKER, did=""), *all_struck()[1:]],
            {},
            "every planned fault struck",
        ),
        (
            [one | {"hit": []} for one in all_struck()],
            {},
            "a worker stood still while it had jobs",
        ),
        (
            all_struck(),
            {"requests_by_status": {"200": 5, "503": 2}},
            "the provider gave bad answers",
        ),
        (
            all_struck(),
            {"attempts_by_a_wrong_clock": 0},
            "a worker with a wrong clock worked",
        ),
    ],
)
def test_a_fault_that_did_nothing_fails(
    faults: list[Facts], replay: Facts, promise: str
) -> None:
    assert failed(judged(terms(0, tuple(Fault)), [], faults, **replay)) == [promise]


def test_the_report_has_the_table_the_plots_the_figures_and_the_verdict() -> None:
    kills = [kill(point="worker.leased"), kill()]
    words = judged(terms(2), kills, []).words().splitlines()
    assert words[0].split() == ["second", "replay", "delivery", "what", "where", "hit"]
    assert "kills by where they ended a process" in words
    assert "kills by second of the run (1 s a row)" in words
    assert words[-1].startswith("PASS  seed 1, ")
