"""MT940: block by block, reversals, year ends, Dutch references, and no interim reports."""

import logging
from datetime import date
from io import BytesIO
from pathlib import Path

import pytest

from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import (
    Balance,
    Identities,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)

DATA = (Path(__file__).parents[1] / "statements" / "mt940_year_end.sta").read_bytes()
EUR = Unit("EUR", 2)


def parse(data: bytes = DATA, **options: object) -> list[Statement]:
    rules = SourceRules(zone="Europe/Amsterdam", options=options)
    return gather(read("mt940", BytesIO(data), rules))


def test_each_block_keeps_its_own_balances() -> None:
    first, second = parse()
    assert first.declared.opening == (Balance(minor=100000, unit=EUR, day=date(2026, 12, 30)),)
    assert first.declared.closing == (Balance(minor=120550, unit=EUR, day=date(2026, 12, 31)),)
    assert second.declared.closing == (Balance(minor=120500, unit=EUR, day=date(2027, 1, 1)),)
    assert [s.declared.sequence for s in (first, second)] == [364, 1]
    assert [s.declared.reference for s in (first, second)] == ["OWN-364", "OWN-1"]
    assert first.declared.account == "NL00OWNB0123456789"
    assert (first.declared.last_day, first.declared.trailer) == (date(2026, 12, 31), True)


def test_a_reversed_credit_is_a_debit_and_a_reversed_debit_a_credit() -> None:
    amounts = [line.amount_minor for line in parse()[0].lines]
    assert amounts == [25000, -1050, -4000, 400, 100, 100]
    assert 100000 + sum(amounts) == 120550


def test_entry_dates_take_the_year_nearest_to_the_value_date() -> None:
    first, second = parse()
    assert first.lines[1].available_day == date(2026, 12, 31)
    assert first.lines[1].booked_day == date(2027, 1, 2)
    assert second.lines[0].available_day == date(2027, 1, 1)
    assert second.lines[0].booked_day == date(2026, 12, 31)


def test_references_are_kept_and_placeholders_are_not() -> None:
    first, second, *_ = parse()[0].lines
    assert first.references == {
        "customer": "ORD-1",
        "bank": "BK0001",
        "end_to_end": "ord-0012",
        "statement": "OWN-364",
    }
    assert second.references == {"statement": "OWN-364"}
    assert (first.kind, first.status) == ("NTRF", "C")


def test_an_entry_keeps_its_physical_line_and_its_whole_text() -> None:
    entry = parse()[0].lines[1]
    assert entry.position == 9
    assert entry.raw == ":61:2612310102D10,5NMSCNONREF\n:86:coffee\n\nand cake"


def test_equal_entries_are_two() -> None:
    seen = Identities()
    assert [seen.of(line).occurrence for line in parse()[0].lines[-2:]] == [1, 2]


def test_a_dutch_iban_in_the_reference_falls_back_to_the_wider_tag(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        (line,) = parse()[1].lines
    assert (line.references["customer"], line.amount_minor) == ("NL00OWNB0123456789", -50)
    assert "NL00OWNB" not in caplog.text


def test_an_interim_report_is_refused() -> None:
    data = b":20:I\n:25:1\n:28C:1/1\n:34F:EUR0\n:13D:2610141815+0100\n:61:2610141014C1,00NTRFNONREF\n:90C:1EUR1,00\n-\n"
    with pytest.raises(StatementError, match="interim report") as refused:
        parse(data)
    assert refused.value.line == 1


BLOCK = b":20:X\n:25:1\n:28C:7/2\n:60M:C261014EUR1,00\n%s\n:62M:D261014EUR1,00\n-\n"


def test_intermediate_balances_are_balances_but_a_page_has_no_number_to_follow() -> None:
    (page,) = parse(BLOCK % b":61:2610141014D2,00NTRFNONREF")
    assert [b.minor for b in (*page.declared.opening, *page.declared.closing)] == [100, -100]
    assert page.declared.sequence is None


def test_a_block_cut_before_its_closing_balance_has_no_end() -> None:
    (cut,) = parse(DATA[: DATA.index(b":62F:")])
    assert (cut.declared.trailer, cut.declared.closing) == (False, ())
    assert len(cut.lines) == 6


@pytest.mark.parametrize(
    "entry",
    [
        b":61:2610141014X2,00NTRFNONREF",
        b":61:nonsense",
        b":61:2610141014D2,00\n:61:2610141014D3,00",
    ],
)
def test_entries_the_library_loses_are_quarantined_not_dropped(entry: bytes) -> None:
    (found,) = parse(BLOCK % entry)
    assert found.lines == ()
    assert len(found.quarantined) == entry.count(b":61:")
    assert "could not be told apart" in found.quarantined[0].reason


def test_a_block_that_cannot_be_read_at_all_is_one_quarantined_row() -> None:
    (found,) = parse(b":20:X\n:25:1\n:60F:rubbish\n:62F:C261014EUR1,00\n")
    assert [row.position for row in found.quarantined] == [1]


def test_an_unknown_currency_quarantines_entries_and_drops_balances() -> None:
    (found,) = parse((BLOCK % b":61:2610141014D2,00NTRFNONREF").replace(b"EUR", b"QQQ"))
    assert "'QQQ'" in found.quarantined[0].reason
    assert found.declared.opening == ()


def test_a_file_in_a_code_page_is_read_as_declared_only() -> None:
    data = BLOCK % ":61:2610141014D2,00NTRFNONREF\n:86:Zürich".encode("cp1252")
    assert "Zürich" in parse(data, encoding="cp1252")[0].lines[0].raw
    with pytest.raises(StatementError, match="0xfc"):
        parse(data)
