"""A process killed at each named point of worker, sweep and redrive: nothing is lost or doubled."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reliability.embedded.servers import throwaway
from reliability.killing import ORDERS, Point
from reliability.management.inside import environment

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "reliability.project.settings"
PLAY = "import django; django.setup(); from tests.proof.points import main; main()"
Facts = dict[str, Any]
ONCE_EACH = {"states": ["done"] * 3, "effects": [1, 1, 1], "outcomes": [], "killed": True}


@pytest.fixture(scope="module")
def found() -> Facts:
    with throwaway(durable=False) as addresses:
        (addresses.folder / ORDERS).mkdir()
        variables = {"DJANGO_SETTINGS_MODULE": SETTINGS, "RELIABILITY_KILL": "ordered"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PLAY],
            cwd=ROOT,
            env=environment(addresses.folder) | variables,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    facts: Facts = json.loads(done.stdout)
    return facts


@pytest.mark.parametrize(
    "point",
    [
        Point.UNRUNG,
        Point.LEASED,
        Point.AMID_BATCH,
        Point.UNCOMMITTED,
        Point.COMMITTED,
        Point.RELEASING,
    ],
)
def test_local_jobs_take_effect_once_whatever_a_kill_interrupts(
    point: Point, found: Facts
) -> None:
    assert found[point] == ONCE_EACH


def test_a_run_once_job_killed_before_its_handler_is_unknown_and_had_no_effect(
    found: Facts,
) -> None:
    assert found[Point.INTENDED] == {
        "killed": True,
        "states": ["dead"],
        "effects": [],
        "outcomes": ["unknown"],
    }


def test_a_run_once_job_killed_after_its_effect_is_unknown_and_had_one(found: Facts) -> None:
    assert found[Point.UNFINISHED] == {
        "killed": True,
        "states": ["dead"],
        "effects": [1],
        "outcomes": ["unknown"],
    }


def test_what_a_killed_sweep_had_rescued_stays_rescued_and_is_worked_by_the_next(
    found: Facts,
) -> None:
    assert found[Point.RESCUED] == ONCE_EACH | {"ready_after_the_kill": 3}


def test_a_redrive_killed_between_requeue_and_settling_requeues_nothing_twice(
    found: Facts,
) -> None:
    assert found[Point.REQUEUED] == ONCE_EACH | {
        "redrive": "done",
        "members": ["succeeded"] * 3,
        "rounds": [2, 2, 2],
    }
