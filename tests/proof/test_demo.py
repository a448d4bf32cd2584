"""`manage.py demo` plays its day to the expected end, and only once at a time."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from reliability.embedded.processes import is_running
from reliability.embedded.servers import Servers
from reliability.embedded.state import read_state
from tests.console.crawl_live import crawl_live

pytestmark = [pytest.mark.proof, pytest.mark.timeout(400)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--events=160", "--seed=6"]


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "manage.py", "demo", *SMALL, *options],
        cwd=ROOT,
        env=os.environ | {"RELIABILITY_DATA": str(folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_demo_ends_with_what_was_written_down_before_its_first_request(
    tmp_path: Path,
) -> None:
    demo = start(tmp_path, "--exit", "--json")
    out, _ = demo.communicate()
    Servers(tmp_path / "demo").remove()

    found = json.loads(out)
    assert found["failed"] == []
    assert (demo.returncode, found["ok"]) == (0, True)
    assert found["dead"] == {"failed": 84, "unparseable": 3}
    assert found["missing"] == {"never_received": 11, "in_dead_letter": 40, "ignored": 1}
    assert found["work"]["reports"]["acme-stripe"] == [
        "unproven, signed", "incomplete", "unproven",
    ]  # fmt: skip
    assert found["work"]["redrives"] == [
        {"source": "borealis-shop", "state": "done", "succeeded": 38},
        {"source": "acme-billing", "state": "done", "succeeded": 12, "failed_again": 6},
        {"source": "borealis-shop", "state": "paused", "succeeded": 1, "pending": 7},
    ]
    assert found["rescued_by_the_sweep"] + found["buried_by_the_sweep"] > 0
    assert found["sweeps_by_trigger"]["beat"] > 0


def count_its_numbers(url: str, shown: str) -> None:
    password = re.search(r"admin[^\w-]+admin[^\w-]+([\w-]+)", shown)
    assert password
    crawled = crawl_live(url, "admin", password[1])
    assert crawled.wrong == []
    assert crawled.numbers > 80


def test_the_demo_stays_up_a_second_one_is_shown_to_it_and_sigterm_ends_all(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo"
    first = start(tmp_path)
    assert first.stdout
    shown = ""
    for line in first.stdout:
        shown += line
        if line.startswith("Console: "):
            break
    url = shown.rpartition("Console: ")[2].split()[0]
    with urllib.request.urlopen(f"{url}/login/", timeout=10) as answer:  # noqa: S310 - our own URL
        assert answer.status == 200
    count_its_numbers(url, shown)

    second = subprocess.run(
        [sys.executable, "manage.py", "demo"],
        cwd=ROOT,
        env=os.environ | {"RELIABILITY_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert url in second.stderr

    processes = read_state(folder).processes.values()
    began = time.monotonic()
    first.send_signal(signal.SIGTERM)
    first.wait()
    first.stdout.close()
    assert time.monotonic() - began < 15
    assert not any(is_running(process) for process in processes)
    Servers(folder).remove()
