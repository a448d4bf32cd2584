"""Each gate catches what only it can see, and says so with its numbers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from reliability.reconcile.formats.base import (
    Balance,
    Declared,
    Line,
    Quarantined,
    StatementError,
    Unit,
)
from reliability.reconcile.gates import Expected, Gate, bytes_gate, check, judge
from reliability.reconcile.tally import Tally

EUR, USD = Unit("EUR", 2), Unit("USD", 2)
DAY = date(2026, 10, 14)
START = datetime(2026, 10, 13, 22, tzinfo=UTC)
END = datetime(2026, 10, 14, 22, tzinfo=UTC)
AS_OF = datetime(2026, 10, 15, 6, tzinfo=UTC)
LINE = Line(
    position=2,
    raw="row",
    kind="charge",
    amount_minor=1000,
    currency="EUR",
    exponent=2,
    fee_minor=30,
    net_minor=970,
    occurred_at=datetime(2026, 10, 14, 8, tzinfo=UTC),
)
PREVIOUS = Declared(closing=(Balance(minor=5000, unit=EUR),), sequence=7)
GOOD = Declared(
    opening=(Balance(minor=5000, unit=EUR),),
    closing=(Balance(minor=5970, unit=EUR),),
    count=1,
    sums={EUR: 970},
    period_start=START,
    period_end=END,
    first_day=DAY,
    last_day=DAY,
    account="NL 01 BANK 1",
    mode="live",
    sequence=8,
    trailer=True,
)
EXPECTED = Expected(
    account="nl01bank1",
    currencies=frozenset({"EUR"}),
    mode="live",
    day=DAY,
    start=START,
    end=END,
    previous=PREVIOUS,
)


def tally(*items: Line | Quarantined) -> Tally:
    counted = Tally()
    for item in items:
        counted.add(item)
    return counted


def gates(
    declared: Declared = GOOD,
    items: tuple[Line | Quarantined, ...] = (LINE,),
    expected: Expected = EXPECTED,
    as_of: datetime = AS_OF,
) -> dict[str, Gate]:
    found = check(declared, tally(*items), expected, size_bytes=100, as_of=as_of)
    return {gate.name: gate for gate in found}


def failed(found: dict[str, Gate]) -> list[str]:
    return [name for name, gate in found.items() if gate.verdict == "failed"]


def test_a_good_statement_passes_every_gate_with_its_numbers() -> None:
    found = gates()
    assert [gate.verdict for gate in found.values()] == ["passed"] * 7
    assert judge(found.values()) == "COMPLETE"
    equation = "opening EUR 50.00 + lines EUR 9.70 = closing EUR 59.70"
    assert found["footing"].numbers["equation 1"] == equation
    assert found["counts"].numbers == {"declared": "1", "read": "1"}
    assert found["continuity"].sentence == (
        "statement 8 follows 7; closed at EUR 50.00, opens at EUR 50.00"
    )


def balanced(declared: Declared, lines_minor: int) -> Declared:
    return replace(
        declared,
        closing=(Balance(minor=5000 + lines_minor, unit=EUR),),
        sums={EUR: lines_minor},
    )


ONLY: list[tuple[str, str, Callable[[], dict[str, Gate]]]] = [
    ("bytes", "end mark is missing", lambda: gates(replace(GOOD, trailer=False))),
    ("identity", "account X, not nl01bank1", lambda: gates(replace(GOOD, account="X"))),
    ("identity", "mode test, not live", lambda: gates(replace(GOOD, mode="test"))),
    (
        "identity",
        "currency EUR does not belong",
        lambda: gates(expected=replace(EXPECTED, currencies=frozenset({"USD"}))),
    ),
    ("counts", "2 rows declared, 1 read", lambda: gates(replace(GOOD, count=2))),
    (
        "footing",
        "opening EUR 50.00 + lines EUR 9.70 ≠ closing EUR 59.69",
        lambda: gates(replace(GOOD, closing=(Balance(minor=5969, unit=EUR),))),
    ),
    (
        "footing",
        "declared EUR 9.71 ≠ lines EUR 9.70",
        lambda: gates(replace(GOOD, sums={EUR: 971})),
    ),
    ("footing", "only one of opening and closing", lambda: gates(replace(GOOD, closing=()))),
    (
        "footing",
        "gross - fee is not net on 1 lines, first on line 2",
        lambda: gates(items=(LINE._replace(fee_minor=31),)),
    ),
    (
        "footing",
        "lines in USD, for which no figure is declared",
        lambda: gates(
            replace(GOOD, count=2),
            (LINE, LINE._replace(currency="USD")),
            replace(EXPECTED, currencies=None),
        ),
    ),
    ("continuity", "statement 9 does not follow 7", lambda: gates(replace(GOOD, sequence=9))),
    (
        "continuity",
        "closed at EUR 49.99, opens at EUR 50.00",
        lambda: gates(
            expected=replace(
                EXPECTED, previous=replace(PREVIOUS, closing=(Balance(minor=4999, unit=EUR),))
            )
        ),
    ),
    ("coverage", "the day is not over", lambda: gates(as_of=datetime(2026, 10, 14, 21, tzinfo=UTC))),
    ("coverage", "period has", lambda: gates(replace(GOOD, period_start=AS_OF))),
    ("coverage", "period is not over", lambda: gates(replace(GOOD, period_end=AS_OF.replace(day=16)))),
    ("coverage", "2026-10-13, the local day has", lambda: gates(replace(GOOD, first_day=date(2026, 10, 13)))),
    ("coverage", "lies before the day begins", lambda: gates(items=(LINE._replace(occurred_at=START.replace(hour=21)),))),
    ("coverage", "lies after the day ends", lambda: gates(items=(LINE._replace(occurred_at=END),))),
    (
        "coverage",
        "a line is of 2026-10-15, not of 2026-10-14",
        lambda: gates(items=(LINE._replace(occurred_at=None, booked_day=date(2026, 10, 15)),)),
    ),
    (
        "parse",
        "1 quarantined row is unexplained; first line 9: no amount",
        lambda: gates(replace(GOOD, count=2), (LINE, Quarantined(9, "raw", "no amount"))),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sentence", "run"), ONLY)
def test_only_this_gate_catches_it(
    name: str, sentence: str, run: Callable[[], dict[str, Gate]]
) -> None:
    found = run()
    assert failed(found) == [name]
    assert sentence in found[name].sentence
    assert judge(found.values()) == "INCOMPLETE"


def test_neither_count_nor_balance_is_unproven() -> None:
    bare = Declared(account="NL01BANK1")
    found = gates(bare)
    assert judge(found.values()) == "UNPROVEN"
    assert found["footing"].verdict == found["counts"].verdict == "unproven"
    assert found["coverage"].verdict == found["continuity"].verdict == "unproven"
    assert judge(gates(replace(bare, count=1)).values()) == "COMPLETE"
    assert judge(gates(replace(bare, sums={EUR: 970})).values()) == "COMPLETE"


def test_no_line_at_all_needs_proof_that_there_was_none() -> None:
    assert failed(gates(Declared(), ())) == ["counts"]
    proven = Declared(
        opening=(Balance(minor=5000, unit=EUR),), closing=(Balance(minor=5000, unit=EUR),)
    )
    assert judge(gates(proven, ()).values()) == "COMPLETE"
    assert judge(gates(Declared(count=0), ()).values()) == "COMPLETE"


def test_a_row_that_could_not_be_read_still_counts_as_a_row() -> None:
    found = gates(
        replace(GOOD, count=2),
        (LINE, Quarantined(9, "raw", "why")),
        replace(EXPECTED, explained=1),
    )
    assert failed(found) == []


def test_numbering_may_restart_with_the_year() -> None:
    assert failed(gates(replace(GOOD, sequence=1))) == []


def test_a_first_statement_has_nothing_to_follow() -> None:
    found = gates(expected=replace(EXPECTED, previous=None))
    assert (found["continuity"].verdict, judge(found.values())) == ("unproven", "COMPLETE")


def test_a_source_without_local_days_is_not_held_to_one() -> None:
    found = gates(expected=replace(EXPECTED, day=None, start=None, end=None))
    assert found["coverage"].verdict == "unproven"


def test_an_unnamed_account_is_unproven_not_passed() -> None:
    assert gates(replace(GOOD, account=None))["identity"].verdict == "unproven"


def test_unreadable_and_empty_files_fail_on_their_bytes() -> None:
    error = StatementError(3, "bad byte", "declare the encoding")
    refused = bytes_gate(10, error, trailer=None)
    assert (refused.verdict, refused.sentence) == (
        "failed",
        "line 3: bad byte; declare the encoding",
    )
    assert bytes_gate(0, None, trailer=None).sentence == "the file is empty"
    assert bytes_gate(1, None, trailer=None).verdict == "passed"


def test_the_tally_keeps_settlement_sums_and_the_span_of_lines() -> None:
    foreign = LINE._replace(
        currency="JPY",
        exponent=0,
        settled_minor=800,
        settled_currency="USD",
        settled_exponent=2,
        fee_minor=None,
        net_minor=None,
        booked_at=AS_OF,
    )
    dated = LINE._replace(occurred_at=None, occurred_day=DAY)
    counted = tally(LINE, foreign, dated, dated._replace(occurred_day=date(2026, 10, 12)))
    assert counted.sums == {EUR: 2910, USD: 800}
    assert (counted.earliest_at, counted.latest_at) == (LINE.occurred_at, AS_OF)
    assert (counted.first_day, counted.last_day) == (date(2026, 10, 12), DAY)
    assert (counted.lines, counted.rows, counted.broken_net) == (4, 4, 0)
