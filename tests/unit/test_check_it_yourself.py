"""What docs/check-it-yourself.md says a command prints is what it prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "check-it-yourself.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ manage\.py ([^\n]+)\n(.*?)```", PAGE, re.DOTALL)


def plain(text: str) -> list[str]:
    """Drop what a terminal pads lines with."""
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[block[0] for block in BLOCKS])
def test_a_command_prints_what_the_page_says(
    command: str, printed: str, tmp_path: Path
) -> None:
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "manage.py", *shlex.split(command)],
        cwd=ROOT,
        env=clean | {"RELIABILITY_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert plain(done.stdout) == plain(printed)


def test_the_page_has_commands_to_run_and_names_only_tests_that_exist() -> None:
    assert len(BLOCKS) == 3
    named = set(re.findall(r"tests/\w+/\w+\.py", PAGE))
    assert len(named) >= 5
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_command_of_the_readmes_claims_is_on_the_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Check it yourself")[2].partition("\n## ")[0]
    names = set(re.findall(r"manage\.py (\w+)|make (demo)", table))
    assert names
    missing = {
        a or b for a, b in names if f"{'manage.py' if a else 'make'} {a or b}" not in PAGE
    }
    assert missing == set()
