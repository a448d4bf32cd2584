"""The list of removals fits the tree: each text is there once, each test exists."""

from pathlib import Path

import pytest

from benchmarks.mutants import REMOVALS, ROOT, Removal

NAMES = [removal.name for removal in REMOVALS]


@pytest.mark.parametrize("removal", REMOVALS, ids=NAMES)
def test_a_removal_finds_what_it_takes_away_and_the_test_it_names(removal: Removal) -> None:
    for edit in removal.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        assert text.count(edit.old) == 1, edit
        assert edit.new != edit.old
    file, _, test = removal.test.partition("::")
    assert f"def {test}(" in Path(ROOT / file).read_text(encoding="utf-8")


def test_there_are_fourteen_removals_and_more() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 14
