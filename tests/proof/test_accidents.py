"""Killed workers, deadly jobs, a broker and a database that go away: nothing is lost or doubled."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reliability.embedded.leftovers import end_stack
from reliability.embedded.servers import throwaway
from reliability.management.inside import HANDLERS, environment

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "reliability.project.settings"
PLAY = "import django; django.setup(); from tests.proof.accidents import main; main()"
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def found() -> Facts:
    with throwaway() as addresses:
        handlers = {"RELIABILITY_HANDLERS": f"{HANDLERS},tests.proof.deadly"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", PLAY],
                cwd=ROOT,
                env=environment(addresses.folder)
                | handlers
                | {"DJANGO_SETTINGS_MODULE": SETTINGS},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        finally:
            end_stack(addresses.folder)
    facts: Facts = json.loads(done.stdout)
    return facts


def test_what_a_killed_group_had_begun_is_rescued_and_takes_effect_once(found: Facts) -> None:
    killed = found["group_killed"]
    assert killed["hit"] > 0
    assert killed["rescued_by_the_sweep"] + killed["buried_by_the_sweep"] >= killed["hit"]
    assert killed["left"] == 0
    assert killed["effects"] == killed["effect_names"] == killed["told"]["effects"]
    assert killed["repeated_effects"] == killed["effects_with_several_keys"] == []
    assert killed["lost"] == []


def test_a_job_that_kills_its_worker_is_buried_as_unknown_and_its_neighbours_are_done(
    found: Facts,
) -> None:
    deadly = found["deadly_job"]
    assert deadly["states"] == ["done"] * 4 + ["dead"] + ["done"] * 4
    assert deadly["outcome"] == "unknown"
    # Once amid its neighbours, then three times alone: the budget.
    assert (deadly["crashes"], deadly["crashes_alone"]) == (4, 3)


def test_deliveries_are_taken_without_a_broker_and_worked_once_it_is_back(
    found: Facts,
) -> None:
    stopped = found["broker_stopped"]
    assert stopped["at_last"] == {"200": 78}
    assert stopped["before"] == {}
    assert stopped["left"] == 0


def test_workers_whose_bells_could_not_be_acknowledged_hear_again(found: Facts) -> None:
    assert found["workers_deafened"] == {"left": 0, "deaf": True}


def test_a_restarted_database_costs_503s_only_and_no_event_that_was_taken(
    found: Facts,
) -> None:
    restarted = found["database_restarted"]
    assert restarted["at_last"] == {"200": 390}
    assert set(restarted["before"]) == {"503"}
    assert restarted["lost"] == []
    assert restarted["left"] == 0
