"""`manage.py up` brings everything up, keeps it up and takes all of it down."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reliability.embedded.processes import Process, is_running
from reliability.embedded.servers import Servers
from reliability.embedded.state import read_state

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[2]
UP = [sys.executable, "manage.py", "up"]


def environment(folder: Path) -> dict[str, str]:
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL", "SECRET_KEY")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return clean | {"RELIABILITY_DATA": str(folder), "PYTHONUNBUFFERED": "1"}


class Up:
    """One `up` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            UP, cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []

    def wait_for_url(self) -> str:
        """Read its output up to the line with the console's address."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("Console: "):
                return line.split()[1]
        raise AssertionError(self.lines)

    def named(self) -> dict[str, Process]:
        """Return everything its files name: servers, supervisor and supervised processes."""
        found = dict(read_state(self.folder).processes)
        for path in (self.folder / "run").glob("*.json"):
            found[path.stem] = Process(**json.loads(path.read_text()))
        return found

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        return code


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[[], Up]]:
    started: list[Up] = []

    def start() -> Up:
        started.append(Up(tmp_path / "data"))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.end(signal.SIGTERM)
    Servers(tmp_path / "data").remove()


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_up_serves_restarts_a_crashed_child_and_stops_everything_within_ten_seconds(
    up: Callable[[], Up],
) -> None:
    first = up()
    url = first.wait_for_url()
    with urllib.request.urlopen(f"{url}/login/", timeout=10) as answer:  # noqa: S310 - our own URL
        assert answer.status == 200

    before = first.named()
    assert set(before) == {
        *("postgres", "valkey", "supervisor", "web", "jobs-1", "ticks", "beat"),
    }
    os.kill(before["beat"].pid, signal.SIGKILL)
    wait_until(
        lambda: is_running(first.named()["beat"]) and not is_running(before["beat"]), 15
    )

    everything = {*before.values(), *first.named().values()}
    began = time.monotonic()
    assert first.end(signal.SIGTERM) == 0
    assert time.monotonic() - began < 10
    assert not any(is_running(process) for process in everything)


def test_a_second_up_names_the_first_ones_url_and_exits_1(up: Callable[[], Up]) -> None:
    first = up()
    url = first.wait_for_url()

    second = subprocess.run(
        UP,
        cwd=ROOT,
        env=environment(first.folder),
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 1
    assert second.stdout == ""
    assert url in second.stderr
    assert second.stderr.count("\n") == 1
    assert all(is_running(process) for process in first.named().values())


def test_after_kill_9_the_next_up_ends_what_was_left_and_is_clean_within_15_s(
    up: Callable[[], Up],
) -> None:
    killed = up()
    killed.wait_for_url()
    left = killed.named()
    killed.end(signal.SIGKILL)
    assert all(is_running(process) for process in left.values())

    began = time.monotonic()
    again = up()
    again.wait_for_url()

    assert time.monotonic() - began < 15
    assert not any(is_running(process) for process in left.values())
    assert all(is_running(process) for process in again.named().values())


def test_after_kill_9_of_up_and_its_supervisor_nothing_old_is_left_either(
    up: Callable[[], Up],
) -> None:
    killed = up()
    killed.wait_for_url()
    left = killed.named()
    killed.end(signal.SIGKILL)
    os.kill(left["supervisor"].pid, signal.SIGKILL)

    up().wait_for_url()

    assert not any(is_running(process) for process in left.values())
