"""Workers killed around the mark of an effect: what the downstream was asked, and what we say of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


def test_a_worker_killed_at_a_mark_leaves_what_its_record_promises() -> None:
    command = [sys.executable, "-m", "benchmarks.marks", "--kills=3", "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert json.loads(done.stdout) == {
        "ok": True,
        "kills": 6,
        "counted": {
            "record=before, killed at worker.marked: 0 requests, dead (unknown)": 1,
            "record=before, killed at worker.answered: 1 requests, dead (unknown)": 1,
            "record=before, killed at worker.unfinished: 1 requests, done": 1,
            "record=after, killed at worker.answered: 2 requests, done": 1,
            "record=after, killed at worker.leased: 1 requests, done": 1,
            "record=after, killed at worker.unfinished: 1 requests, done": 1,
        },
    }
    assert done.returncode == 0
