"""Take one guard of the engine away at a time, in a copy of the tree, and name the test that fails.

``python -m benchmarks.mutants`` runs all, about ten seconds each; name some to run only those.
A removal whose test still passes is a survivor, and the command ends with 1.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "staticfiles", "shots")
TEST_SECONDS = 300
PASSED, FAILED = 0, 1
"""pytest's exit codes; every other one means that no test spoke."""


@dataclass(frozen=True)
class Edit:
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Removal:
    """One guard taken away; ``test`` is the one that must fail then."""

    name: str
    test: str
    edits: tuple[Edit, ...]


SQL, WORK, CLAIM = "reliability/sql", "reliability/work", "reliability/claim"
TESTS = "tests/database"

REMOVALS = (
    Removal(
        "token at completion",
        f"{TESTS}/test_guards.py::test_a_stale_worker_cannot_finish_while_a_newer_one_works",
        (Edit(f"{SQL}/finish_jobs.sql", "AND job.token = ended.token AND ", "AND "),),
    ),
    Removal(
        "state guard in the sweep",
        f"{TESTS}/test_move_pairs.py::test_of_two_who_end_one_start_the_first_wins",
        (
            Edit(
                f"{WORK}/rescue.py",
                ".select_for_update(skip_locked=True)\n        .filter("
                "state=Job.State.RUNNING,",
                ".all()\n        .filter(state=Job.State.RUNNING,",
            ),
            Edit(
                f"{SQL}/rescue_job.sql",
                " AND token = %(token)s AND state = 'running'\n"
                "      AND lease_expires_at <= clock_timestamp()",
                "",
            ),
        ),
    ),
    Removal(
        "expiry check",
        f"{TESTS}/test_failures.py::test_a_sweep_whose_clock_is_wrong_takes_no_living_lease",
        (
            Edit(f"{WORK}/rescue.py", ", lease_expires_at__lte=_database_now()", ""),
            Edit(
                f"{SQL}/rescue_job.sql",
                "\n      AND lease_expires_at <= clock_timestamp()",
                "",
            ),
        ),
    ),
    Removal(
        "SKIP LOCKED",
        f"{TESTS}/test_guards.py::test_a_worker_waits_for_no_job_that_another_is_taking",
        (Edit(f"{SQL}/claim_jobs.sql", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),),
    ),
    Removal(
        "on_commit as the only trigger",
        f"{TESTS}/test_guards.py::test_the_sweep_rings_for_a_job_whose_bell_was_lost",
        (
            Edit(
                "reliability/sweep/stalled.py",
                " | set(due_queues(since=conf().start_grace))",
                "",
            ),
        ),
    ),
    Removal(
        "start counted after the work",
        f"{TESTS}/test_work.py::test_a_job_that_kills_its_worker_each_time_is_unknown_after_three_"
        "crashes_alone",
        (
            Edit(f"{SQL}/claim_jobs.sql", "        starts = starts + 1,\n", ""),
            Edit(
                f"{SQL}/finish_jobs.sql",
                "intent_at = NULL, result",
                "intent_at = NULL, starts = starts + 1, result",
            ),
        ),
    ),
    Removal(
        "crash counter in the message",
        f"{TESTS}/test_work.py::test_a_job_that_kills_its_worker_each_time_is_unknown_after_three_"
        "crashes_alone",
        (
            Edit(
                f"{SQL}/rescue_job.sql",
                "        crashes = crashes + 1, crashes_alone = "
                "crashes_alone + CASE WHEN alone THEN 1 ELSE 0 END",
                "        worker = worker",
            ),
        ),
    ),
    Removal(
        "downstream key from the job id",
        f"{TESTS}/test_adoption.py::test_a_task_that_asks_for_the_event_is_given_its_downstream_"
        "key",
        (
            Edit(
                f"{SQL}/load_events.sql",
                "known.downstream_key,",
                "job.id::text AS downstream_key,",
            ),
        ),
    ),
    Removal(
        "purge by age alone",
        f"{TESTS}/test_purge.py::test_only_done_jobs_are_purged_however_old",
        (
            Edit(f"{SQL}/purge_done.sql", " AND attempt.outcome IN ('done', 'late')", ""),
            Edit(f"{SQL}/purge_done.sql", "job.state = 'done' AND ", ""),
        ),
    ),
    Removal(
        "key without tenant",
        f"{TESTS}/test_guards.py::test_one_key_of_two_tenants_is_two_own_jobs",
        (
            Edit(
                f"{CLAIM}/enqueue.py",
                'tenant=owner, slug=slug, defaults={"internal": True}',
                'slug=slug, defaults={"internal": True, "tenant": owner}',
            ),
        ),
    ),
    Removal(
        "key from the payload's hash",
        f"{TESTS}/test_claim.py::test_two_events_with_equal_payloads_and_operations_of_their_own_"
        "are_two_effects",
        (Edit(f"{CLAIM}/accept.py", '"key": event.key,', '"key": str(hash(event.body)),'),),
    ),
    Removal(
        "schedule keyed by the time it fired",
        f"{TESTS}/test_schedule.py::test_a_period_is_one_job_however_often_the_clock_fires",
        (
            Edit(
                f"{CLAIM}/schedule.py",
                "period_key_of(subject.name, label)",
                "period_key_of(subject.name, str(now))",
            ),
        ),
    ),
    Removal(
        "requeue without version",
        f"{TESTS}/test_dead_letters.py::test_a_stale_version_is_refused_even_while_the_letter_is_"
        "open",
        (
            Edit(
                f"{WORK}/dead_letters.py", " and letter.job.version == versions[letter.pk]", ""
            ),
            Edit(f"{WORK}/dead_letters.py", ", version=versions[letter.pk]\n", "\n"),
        ),
    ),
    Removal(
        "completion outside the effect's transaction",
        f"{TESTS}/test_guards.py::test_a_worker_that_lost_its_job_leaves_no_rows_of_it",
        (
            Edit(
                f"{WORK}/batch.py",
                "                    break\n            _settle(batch)\n",
                "                    break\n        _settle(batch)\n",
            ),
        ),
    ),
    Removal(
        "mark before the effect",
        f"{TESTS}/test_effects.py::test_50_kills_of_record_before_never_ask_twice_and_are_unknown_"
        "unless_confirmed",
        (
            Edit(
                f"{SQL}/mark_effect.sql",
                "SET intent_at = clock_timestamp()",
                "SET intent_at = NULL",
            ),
            Edit(f"{SQL}/mark_effect.sql", " AND known.round < excluded.round", ""),
        ),
    ),
    Removal(
        "fence before an effect",
        f"{TESTS}/test_effects.py::test_a_stale_worker_begins_no_effect",
        (Edit(f"{WORK}/effects.py", "        self._hold()\n", ""),),
    ),
    Removal(
        "a person's decision before a late result",
        f"{TESTS}/test_effects.py::test_a_late_result_is_refused_once_a_person_asked_for_another_"
        "round",
        (Edit(f"{SQL}/finish_late.sql", " AND job.round = %(round)s", ""),),
    ),
    Removal(
        "quarantine of what crashed before",
        f"{TESTS}/test_work.py::test_a_stale_worker_cannot_finish_a_job_the_sweep_took_back",
        (Edit(f"{SQL}/claim_jobs.sql", " AND crashes = round_crashes", ""),),
    ),
)


def apply(removal: Removal, tree: Path) -> None:
    """Make the removal's edits in ``tree``; each text must be there exactly once."""
    for edit in removal.edits:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise SystemExit(
                f"{removal.name}: {edit.file} holds its text {text.count(edit.old)} "
                "times, not once; bring benchmarks/mutants.py up to date."
            )
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def ends(tests: list[str], tree: Path) -> int:
    """Run tests in ``tree`` up to the first that fails; return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=tree, capture_output=True, check=False, timeout=TEST_SECONDS
    ).returncode


def caught(removal: Removal, folder: Path) -> bool:
    """Try one removal in a fresh copy; ``True`` when its test fails."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    try:
        apply(removal, tree)
        return ends([removal.test], tree) == FAILED
    finally:
        shutil.rmtree(tree)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="of a removal; all when none is named")
    asked = parser.parse_args().name
    chosen = [removal for removal in REMOVALS if not asked or removal.name in asked]
    if ends(sorted({removal.test for removal in chosen}), ROOT) != PASSED:
        print("The tests fail already with every guard in place: nothing can be said.")
        return 1
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        for removal in chosen:
            found = caught(removal, Path(folder))
            survivors += not found
            print(
                f"{'caught  ' if found else 'SURVIVED'}  {removal.name}: {removal.test}",
                flush=True,
            )
    print(f"{len(chosen) - survivors} of {len(chosen)} removals caught.")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
