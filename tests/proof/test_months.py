"""Months with planted wrongs: exactly those are found, nothing else, and all can be cleared.

Two small months; ``python -m benchmarks.months`` lives through ten of full size.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from reliability.claim.door import forget
from tests.proof import feed, lived, months, second_look

SMALL, BIG_DAY = 20, 200
EVERY_MONTH = {"never": 40, "dead": 25, "changed": 12, "twice_theirs": 9, "twice_ours": 7}


@pytest.fixture
def handlers() -> Iterator[None]:
    forget()
    with feed.handled():
        yield


@pytest.mark.django_db
@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("seed", range(2))
def test_exactly_what_was_planted_in_a_month_is_found_and_can_be_cleared(
    seed: int, tmp_path: Path
) -> None:
    month = months.invent(seed, months.FIRSTS[seed], per_day=SMALL, big_day=BIG_DAY)
    months.write_planted(month, tmp_path / "planted.json")
    outcome = lived.live(month)
    assert outcome.wrong == []
    # 40 never sent, 25 in dead letter, 12 changed, 9 twice on their side, and 8 that come late.
    assert (outcome.planted, outcome.found, outcome.false_alarms) == (94, 94, 0)
    assert outcome.open_at_the_end == 0


@pytest.mark.parametrize("first", months.FIRSTS)
def test_every_month_has_every_kind_of_wrong(first: date) -> None:
    month = months.invent(1, first, per_day=SMALL)
    fates = Counter(m.fate for m in month.movements if m.fate)
    assert fates == EVERY_MONTH | {"late": 8}
    odd = [month.truncated, month.missing, month.resent, month.revised]
    assert len({day for _, day in odd}) == len(odd)
    assert all(months.rows_of(month, *one) for one in odd)
    assert any(m.currency == "JPY" for m in month.movements)


def test_the_first_months_have_changing_clocks_and_the_day_after_christmas() -> None:
    days = {
        day
        for first in months.FIRSTS[:3]
        for day in months.invent(1, first, per_day=SMALL).days
    }
    assert {date(2026, 10, 25), date(2025, 12, 26), date(2026, 3, 8)} <= days
    assert not months.is_open(months.BANK, date(2025, 12, 26))


@pytest.mark.parametrize("module", [months, second_look])
def test_what_invents_and_what_looks_again_know_nothing_of_the_product(module: object) -> None:
    tree = ast.parse(Path(str(getattr(module, "__file__", ""))).read_text())
    named = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [one.name for one in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert named <= set(sys.stdlib_module_names)
