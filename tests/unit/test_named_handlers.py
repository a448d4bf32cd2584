"""Handlers outside the installed apps are named in the environment, or the start is refused."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOW = "from reliability.handlers import kinds; print([kind.name for kind in kinds()])"
BAD = """
from reliability import BACKGROUND, handler

@handler("noise.made", policy=BACKGROUND)
def handle(event): ...
"""


def manage(tmp_path: Path, handlers: str, *command: str) -> "subprocess.CompletedProcess[str]":
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    given = {"RELIABILITY_DATA": str(tmp_path / "data"), "RELIABILITY_HANDLERS": handlers}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=clean | given | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_module_that_cannot_be_imported_is_named_in_one_line(tmp_path: Path) -> None:
    done = manage(tmp_path, "no.such.module", "check")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "RELIABILITY_HANDLERS names 'no.such.module'" in done.stderr


def test_a_named_modules_kinds_are_registered_and_checked(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(BAD)
    shown = manage(tmp_path, "noise", "shell", "--no-imports", "-c", SHOW)
    assert shown.stdout == "['forward', 'noise.made', 'reliability.test']\n"
    checked = manage(tmp_path, "noise", "check")
    assert checked.returncode == 1
    assert "reliability.E010" in checked.stderr
