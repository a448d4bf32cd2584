"""Kill points: the list and the calls agree, each order is obeyed once, nowhere else is one taken."""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from reliability.killing import ORDERS, THROWAWAY, Point, obeyed, order, read, withdraw

ROOT = Path(__file__).resolve().parents[2]
PASSES = """
import sys
from reliability.killing import Point, reach
for number in range(int(sys.argv[1])):
    reach(Point.COMMITTED)
    print(number + 1, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / THROWAWAY).touch()
    (tmp_path / ORDERS).mkdir()
    return tmp_path


def environment(folder: Path, kill: str, **others: str) -> dict[str, str]:
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    given = {"RELIABILITY_DATA": str(folder), "RELIABILITY_PACE": "quick"}
    return clean | given | {"RELIABILITY_KILL": kill} | others


def passes(folder: Path, kill: str, number: int = 5) -> tuple[int, list[str]]:
    """Pass a point in a process of its own; return its end and the passages it survived."""
    done = subprocess.run(
        [sys.executable, "-c", PASSES, str(number)],
        cwd=ROOT,
        env=environment(folder, kill),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.split()


def reached() -> list[str]:
    """List the member that each call of ``reach`` in the engine names."""
    calls = (
        node
        for path in (ROOT / "reliability").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reach"
    )
    return [ast.unparse(call.args[0]) for call in calls]


def test_every_point_is_reached_somewhere_and_every_call_names_a_point() -> None:
    assert set(reached()) == {f"Point.{point.name}" for point in Point}


def test_the_record_of_the_decision_lists_every_point() -> None:
    [record] = (ROOT / "docs/adr").glob("0062-*.md")
    listed = re.findall(
        r"^\| `([a-z.-]+)` \|", record.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert listed == list(Point)


def test_a_process_dies_at_the_passage_that_was_ordered_and_its_successor_does_not(
    folder: Path,
) -> None:
    assert passes(folder, "worker.committed:3") == (-signal.SIGKILL, ["1", "2"])
    assert passes(folder, "worker.committed:3") == (0, ["1", "2", "3", "4", "5"])


def test_an_order_that_lies_there_is_obeyed_by_one_process(folder: Path) -> None:
    order(folder, Point.COMMITTED)
    assert passes(folder, "ordered") == (-signal.SIGKILL, [])
    assert obeyed(folder, Point.COMMITTED)
    assert obeyed(folder, Point.COMMITTED) is None
    assert passes(folder, "ordered")[0] == 0


def test_an_order_taken_back_kills_nobody(folder: Path) -> None:
    order(folder, Point.COMMITTED)
    assert withdraw(folder, Point.COMMITTED)
    assert not withdraw(folder, Point.COMMITTED)
    assert passes(folder, "ordered")[0] == 0


def test_nothing_is_read_where_nothing_is_ordered(folder: Path) -> None:
    assert read(environment(folder, "")) is None
    assert read(environment(folder, "ordered")) == {}
    assert read(environment(folder, "ingest.claimed:2,worker.leased:1")) == {
        Point.CLAIMED: 2,
        Point.LEASED: 1,
    }


@pytest.mark.parametrize(
    "others",
    [
        {"RELIABILITY_PACE": "shipped"},
        {"RELIABILITY_DATA": ""},
        {"RELIABILITY_DATA": str(ROOT / "docs")},
        {"DATABASE_URL": "postgresql://u:p@127.0.0.1:1/none"},
        {"BROKER_URL": "redis://127.0.0.1:1/0"},
    ],
)
def test_orders_are_refused_outside_throw_away_servers_and_the_quick_pace(
    folder: Path, others: dict[str, str]
) -> None:
    with pytest.raises(ImproperlyConfigured, match="throw-away servers"):
        read(environment(folder, "worker.leased:1", **others))


@pytest.mark.parametrize(
    "text", ["worker.nowhere:1", "worker.leased", "worker.leased:0", "worker.leased:-1"]
)
def test_an_order_that_means_nothing_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="is not point:hit"):
        read(environment(folder, text))


def test_a_command_under_a_refused_order_ends_with_one_line(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment(folder, "worker.leased:1", RELIABILITY_PACE="shipped"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "RELIABILITY_KILL" in done.stderr
