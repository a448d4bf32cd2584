"""What the list of others' failures names as its guard exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_the_list_of_failures_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/failures.md").read_text()))
    found = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert named
    assert named - found == set()
