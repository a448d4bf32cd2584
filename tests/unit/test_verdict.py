"""The verdict names every figure and every promise that does not hold, and nothing else."""

from typing import Any

import pytest

from reliability.proof.verdict import Check, checks, figures, same_state

TOLD: dict[str, Any] = {
    "sent": 18,
    "events": 12,
    "accepted": 10,
    "absorbed": 2,
    "repeats": 6,
    "duplicates": 8,
    "operations": 8,
    "done": 9,
    "dead": {"failed": 1, "unparseable": 0},
    "effects": 6,
    "effects_by_path": {"/v1/reversals": 2, "/v1/credits": 4},
    "mails": 1,
    "local": 2,
}
FOUND: dict[str, Any] = {
    "sent": 18,
    "sent_again": 0,
    "refused": 0,
    "accepted": 10,
    "duplicates": 8,
    "claimed": 10,
    "absorbed": 2,
    "conflicts": 0,
    "operations": 8,
    "done": 9,
    "dead": {"failed": 1},
    "effects": 6,
    "effects_by_path": {"/v1/credits": 4, "/v1/reversals": 2},
    "effect_names": 6,
    "repeated_effects": [],
    "effects_with_several_keys": [],
    "follow_ups": 2,
    "follow_ups_done": 2,
    "mails": 3,
    "repeated_mails": [],
    "conservation": {"accepted": 12, "jobs": 12, "done": 11, "dead": 1},
    "lost": [],
    "left": 0,
}


def failed(found: dict[str, Any]) -> list[str]:
    return [check.promise for check in checks(figures(TOLD), found) if not check.ok]


def test_a_day_that_ended_as_told_has_no_failed_check() -> None:
    assert failed(FOUND) == []


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"mails": 4}, "mails as told beforehand"),
        ({"dead": {"failed": 1, "unknown": 1}}, "dead as told beforehand"),
        ({"conflicts": 1}, "conflicts as told beforehand"),
        ({"effect_names": 5}, "each operation took effect once"),
        ({"repeated_effects": ["a"]}, "no operation took effect twice"),
        ({"effects_with_several_keys": ["a"]}, "one downstream key an operation"),
        ({"repeated_mails": ["m"]}, "one raw request a run-once key"),
        (
            {"conservation": {"accepted": 12, "jobs": 11}},
            "accepted equals what its jobs are doing",
        ),
        ({"lost": ["acme evt_1"]}, "every event answered 2xx exists"),
        ({"refused": 1}, "no delivery was refused"),
        ({"left": 1}, "no job was left under way"),
    ],
)
def test_each_broken_promise_is_named(change: dict[str, Any], promise: str) -> None:
    assert failed(FOUND | change) == [promise]


def test_a_claim_whose_answer_was_lost_may_be_heard_of_as_a_duplicate() -> None:
    heard = {"accepted": 9, "duplicates": 9}
    assert failed(FOUND | heard | {"sent_again": 1}) == []
    assert failed(FOUND | heard) == [
        "accepted as told beforehand",
        "duplicates as told beforehand",
    ]
    twice = {"accepted": 8, "duplicates": 10, "sent_again": 1}
    assert failed(FOUND | twice) == [
        "accepted as told beforehand",
        "duplicates as told beforehand",
    ]


def test_a_file_of_events_tells_less_beforehand() -> None:
    assert [check.promise for check in checks({"conflicts": 0}, FOUND) if not check.ok] == []


def test_a_state_that_differs_from_the_control_run_is_named_by_its_replay() -> None:
    found = same_state(["a", "b"], control="a")
    assert [check.ok for check in found] == [True, False]
    assert found[1] == Check("replay 2: the state of an unfaulted run", "a", "b")
