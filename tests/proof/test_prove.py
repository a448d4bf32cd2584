"""`manage.py prove` passes while keys are honoured and fails when they are not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--events=120", "--replays=2", "--kills=6", "--seed=4", "--json"]


def prove(tmp_path: Path, *options: str, **variables: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "prove", *SMALL, f"--logs={tmp_path}", *options],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_every_replay_of_a_day_under_kills_ends_as_a_run_without_faults(
    tmp_path: Path,
) -> None:
    code, proof = prove(tmp_path)

    assert proof["failed"] == []
    assert (code, proof["ok"]) == (0, True)
    assert len(proof["kill_log"]) == 6
    assert proof["figures"]["kills_that_hit_a_running_job"] > 0
    assert [replay["sent"] for replay in proof["replays"]] == [156, 311]
    assert {replay["digest"] for replay in proof["replays"]} == {proof["figures"]["digest"]}
    assert sum(proof["figures"]["kills_by_point"].values()) == 6
    assert sum(proof["figures"]["kills_by_second"].values()) == 6


def test_servers_that_go_away_and_workers_that_stand_still_change_nothing_either(
    tmp_path: Path,
) -> None:
    code, proof = prove(tmp_path, "--faults=all")

    assert proof["failed"] == []
    assert (code, proof["ok"]) == (0, True)
    assert proof["figures"]["faults"] == dict.fromkeys(
        ["broker", "postgres", "backend", "sigstop", "answers"], 2
    )
    assert proof["figures"]["attempts_by_a_wrong_clock"] > 0


def test_a_file_of_events_is_worked_by_the_hosts_own_handlers_as_far_as_they_stay_here(
    tmp_path: Path,
) -> None:
    kinds = (
        ("stripe", "customer.updated"),
        ("standard-webhooks", "stock.changed"),
        ("stripe", "payout.paid"),
    )
    told = [
        {"scheme": scheme, "body": {"id": f"evt_{number}_{kind}", "type": kind}}
        for number in range(10)
        for scheme, kind in kinds
    ]
    file = tmp_path / "day.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in told), encoding="utf-8")
    own = {"RELIABILITY_HANDLERS": "tests.proof.app_handlers"}
    code, proof = prove(tmp_path, f"--file={file}", "--app", "--kills=2", **own)

    assert proof["failed"] == []
    assert (code, proof["ok"]) == (0, True)
    assert proof["cannot_redirect"] == ["stripe.payout.paid"]
    assert proof["figures"]["conservation"] == {"accepted": 20, "jobs": 20, "done": 20}


def test_without_the_providers_key_check_the_proof_fails(tmp_path: Path) -> None:
    code, proof = prove(tmp_path, "--no-key-check")

    failed = {check["promise"] for check in proof["failed"]}
    assert (code, proof["ok"]) == (1, False)
    assert "no operation took effect twice" in failed
