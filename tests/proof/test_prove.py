"""`manage.py prove` passes while keys are honoured and fails when they are not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--events=120", "--replays=2", "--kills=6", "--seed=4", "--json"]


def prove(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "prove", *SMALL, f"--logs={tmp_path}", *options],
        cwd=ROOT,
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


def test_without_the_providers_key_check_the_proof_fails(tmp_path: Path) -> None:
    code, proof = prove(tmp_path, "--no-key-check")

    failed = {check["promise"] for check in proof["failed"]}
    assert (code, proof["ok"]) == (1, False)
    assert "no operation took effect twice" in failed
