"""A delimited file is read as declared: exact headers, forms, zones and control rows."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path

import pytest

from reliability.reconcile.formats import mapped_csv, read
from reliability.reconcile.formats.base import (
    Balance,
    Mode,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)

SAMPLES = Path(__file__).parents[1] / "statements"
CHF = Unit("CHF", 2)


def parse(data: bytes | str, options: Mapping[str, object], mode: Mode = "live") -> Statement:
    data = (SAMPLES / data).read_bytes() if isinstance(data, str) else data
    rules = SourceRules(zone="Europe/Zurich", mode=mode, options=options)
    (only,) = gather(read("mapped-csv", BytesIO(data), rules))
    return only


ZONES: dict[str, object] = {
    "separator": ";",
    "decimal": ",",
    "thousands": ".",
    "dates": "%d.%m.%Y %H:%M",
    "columns": {"occurred": "Wann", "zone": "Zone", "amount": "Betrag", "currency": "Währung"},
    "references": {"receipt": "Beleg"},
}
BANK: dict[str, object] = {
    "encoding": "cp1252",
    "separator": ";",
    "thousands": "'",
    "dates": "%d.%m.%Y",
    "currency": "CHF",
    "preamble_rows_max": 5,
    "columns": {"booked": "Buchung", "debit": "Soll", "credit": "Haben"},
    "references": {"payee": "Empfänger"},
    "rows": [
        {"column": "Buchung", "equals": "Anzahl", "is": "count", "figure": "Empfänger"},
        {"column": "Buchung", "starts": "Schluss", "is": "closing", "figure": "Saldo"},
    ],
}


def test_a_byte_order_mark_is_not_part_of_the_first_header() -> None:
    options = {
        **ZONES,
        "dates": "%d.%m.%Y",
        "columns": {**_columns(ZONES), "occurred": "Datum"},
    }
    found = parse("mapped_bom_zones.csv", options)
    assert found.lines[0].occurred_day == date(2026, 10, 24)
    assert found.lines[0].amount_minor == 123456


def test_each_row_is_read_in_the_zone_it_names() -> None:
    data = (SAMPLES / "mapped_bom_zones.csv").read_text("utf-8-sig")
    joined = data.replace("Datum;Zeit", "Wann").replace("26;", "26 ").encode()
    found = parse(joined, ZONES)
    assert [line.occurred_at for line in found.lines] == [
        datetime(2026, 10, 24, 21, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    ]
    assert "'XYT'" in found.quarantined[0].reason


def test_preamble_footer_and_code_page_are_declared_and_the_footer_is_a_control() -> None:
    found = parse("mapped_preamble_footer_cp1252.csv", BANK)
    assert [line.amount_minor for line in found.lines] == [-120000, 20000, 20000, 20000]
    assert found.lines[1].references == {"payee": "Café Zürich"}
    assert found.lines[1].booked_day == date(2026, 10, 1)
    assert found.declared.count == 4
    assert found.declared.closing == (Balance(minor=940000, unit=CHF),)
    assert found.quarantined == ()
    assert [line.position for line in found.lines] == [5, 6, 7, 8]


def test_a_running_balance_gives_opening_and_closing() -> None:
    columns = {**_columns(BANK), "balance": "Saldo"}
    found = parse("mapped_preamble_footer_cp1252.csv", {**BANK, "columns": columns})
    assert found.declared.opening == (Balance(minor=1000000, unit=CHF),)
    newest = "d;a;b\n2026-10-02;5.00;15.00\n2026-10-01;10.00;10.00\n"
    shape = {
        "separator": ";",
        "currency": "EUR",
        "balance_order": "newest first",
        "columns": {"booked": "d", "amount": "a", "balance": "b"},
    }
    declared = parse(newest.encode(), shape).declared
    assert [b.minor for b in (*declared.opening, *declared.closing)] == [0, 1500]


def test_a_wrong_encoding_is_refused_at_its_line_and_byte() -> None:
    with pytest.raises(StatementError, match="0xe4 at column 13 is not utf-8") as refused:
        parse("mapped_preamble_footer_cp1252.csv", {**BANK, "encoding": "utf-8"})
    assert refused.value.line == 4


@pytest.mark.parametrize("encoding", ["utf-16", "utf-7x", "rot13"])
def test_an_encoding_that_is_no_superset_of_ascii_is_refused(encoding: str) -> None:
    with pytest.raises(StatementError, match="is not one this reader takes"):
        parse("mapped_modes.csv", {**MODES, "encoding": encoding})


def test_parentheses_are_a_minus_and_half_of_them_are_nothing() -> None:
    shape = {
        "negative": "parentheses",
        "thousands": ",",
        "marks": ["$"],
        "currency": "USD",
        "dates": "%Y/%m/%d",
        "columns": {"occurred": "Day", "amount": "Amount", "kind": "Kind"},
    }
    found = parse("mapped_parentheses.csv", shape)
    assert [line.amount_minor for line in found.lines] == [-850, -23, 152000]
    assert [row.position for row in found.quarantined] == [5, 6]


MODES: dict[str, object] = {
    "columns": {
        "id": "id", "occurred": "day", "amount": "amount", "currency": "currency", "mode": "mode",
        "status": "status",
    },
    "live": ["Live"],
    "test": ["Test"],
}  # fmt: skip


def test_a_test_row_in_a_live_file_refuses_the_file() -> None:
    with pytest.raises(StatementError, match="mode 'Test' in a live statement") as refused:
        parse("mapped_modes.csv", MODES)
    assert refused.value.line == 4


def test_a_declared_skip_rule_leaves_the_live_rows() -> None:
    skip = [{"column": "mode", "equals": "Test", "is": "skip"}]
    found = parse("mapped_modes.csv", {**MODES, "rows": skip})
    assert [line.provider_id for line in found.lines] == ["ch_1", "ch_2"]


def test_only_final_lines_reconcile() -> None:
    skip = [{"column": "mode", "equals": "Test", "is": "skip"}]
    found = parse("mapped_modes.csv", {**MODES, "rows": skip, "final": ["Paid"]})
    assert [line.provider_id for line in found.lines] == ["ch_1"]


def test_an_unknown_mode_word_is_quarantined() -> None:
    found = parse(
        b"id,day,amount,currency,mode,status\nx,2026-10-14,1.00,EUR,Demo,Paid\n", MODES
    )
    assert found.quarantined[0].reason == "mode 'Demo' is neither live nor test"


DIRECTION: dict[str, object] = {
    "columns": {"occurred": "day", "amount": "amount", "direction": "way"},
    "currency": "EUR",
    "incoming": ["C"],
    "outgoing": ["D"],
}


def test_direction_is_mandatory_where_it_is_a_column() -> None:
    data = b"day,amount,way\n2026-10-14,1.00,C\n2026-10-14,2.00,D\n2026-10-14,3.00,\n2026-10-14,-4.00,D\n"
    found = parse(data, DIRECTION)
    assert [line.amount_minor for line in found.lines] == [100, -200]
    assert [row.position for row in found.quarantined] == [4, 5]


def test_two_filled_amount_columns_are_not_added_up() -> None:
    shape = {"columns": {"occurred": "d", "debit": "out", "credit": "in"}, "currency": "EUR"}
    found = parse(b"d,out,in\n2026-10-14,1.00,2.00\n2026-10-14,,\n2026-10-14,-1.00,\n", shape)
    assert len(found.quarantined) == 3


def test_an_unquoted_separator_does_not_shift_the_columns() -> None:
    shape = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR"}
    found = parse(b"d,text,a\n2026-10-14,Smith, John,1.00\n2026-10-14,ok,2.00\n", shape)
    assert [line.amount_minor for line in found.lines] == [200]
    assert found.quarantined[0].reason == "the row has 4 of 3 columns"


def test_a_missing_or_double_header_refuses_the_file() -> None:
    shape = {"columns": {"occurred": "d", "amount": "Amount"}, "currency": "EUR"}
    with pytest.raises(StatementError, match="no column 'Amount'"):
        parse(b"d,amount\n2026-10-14,1.00\n", shape)
    with pytest.raises(StatementError, match="has 'Amount' twice"):
        parse(b"d,Amount,Amount\n2026-10-14,1.00,2.00\n", shape)


def test_a_file_without_a_header_is_read_by_declared_names() -> None:
    shape = {
        "header": ["day", "text", "amount"],
        "separator": ";",
        "decimal": ",",
        "currency": "DKK",
        "columns": {"occurred": "day", "amount": "amount"},
    }
    found = parse(b"2026-10-14;x;-48,00\n2026-10-14;y;+5,00", shape)
    assert [line.amount_minor for line in found.lines] == [-4800, 500]


def test_a_missing_trailer_row_is_declared_missing() -> None:
    shape = {
        "columns": {"occurred": "d", "amount": "a"},
        "currency": "EUR",
        "rows": [{"column": "d", "equals": "END", "is": "trailer"}],
    }
    assert parse(b"d,a\n2026-10-14,1.00\nEND\n", shape).declared.trailer is True
    assert parse(b"d,a\n2026-10-14,1.00\n", shape).declared.trailer is False


def test_a_control_row_that_cannot_be_read_is_quarantined() -> None:
    rows = [{"column": "d", "equals": "Total", "is": "sum", "figure": "a"}]
    shape = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR", "rows": rows}
    assert parse(b"d,a\nTotal,1.0x\n", shape).quarantined[0].position == 2
    assert parse(b"d,a\nTotal\n", shape).quarantined[0].position == 2
    assert parse(b"d,a\nTotal,1.00\n", shape).declared.sums == {Unit("EUR", 2): 100}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"colums": {}}, "option 'colums' does not exist"),
        ({"columns": {"amounts": "a", "occurred": "d"}}, "'amounts', which is no field"),
        ({"columns": {"occurred": "d"}}, "needs 'amount', or"),
        ({"columns": {"occurred": "d", "debit": "a"}}, "together"),
        ({"columns": {"amount": "a"}}, "'occurred' or 'booked'"),
        ({"currency": ""}, "currency is neither"),
        ({"decimal": ",", "thousands": ","}, "two different single characters"),
        ({"negative": "red ink"}, "must be one of minus"),
        ({"units": "cents"}, "must be one of major, minor"),
        ({"rows": [{"column": "d"}]}, "is not of the form"),
        ({"rows": [{"column": "d", "is": "count", "equals": "x"}]}, "'figure' names"),
        ({"rows": [{"column": "d", "is": "skip"}]}, "needs 'equals' or 'starts'"),
        ({"marks": "$"}, "must be a list"),
        ({"marks": [1]}, "must be a list of texts"),
        ({"columns": [1]}, "must map names"),
        ({"separator": 1}, "must be text"),
        ({"preamble_rows_max": 1000}, "a number from 0 to 100"),
        ({"columns": {"occurred": "d", "amount": "a", "mode": "m"}}, "'live' and 'test'"),
        ({"columns": {"occurred": "d", "amount": "a", "direction": "m"}}, "'incoming'"),
    ],
)
def test_wrong_options_are_refused_by_name(change: dict[str, object], rule: str) -> None:
    good = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR"}
    with pytest.raises(StatementError, match=rule):
        parse(b"d,a\n", {**good, **change})


def _columns(options: Mapping[str, object]) -> dict[str, str]:
    columns = options["columns"]
    assert isinstance(columns, dict)
    return columns


@pytest.mark.parametrize(
    "row", [b"2026-10-15,1\0.00\n", b"2026-10-15," + b"1" * (1 << 20) + b"\n"]
)
def test_a_nul_byte_or_an_endless_line_far_down_refuses_the_file(row: bytes) -> None:
    shape = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR"}
    many = b"2026-10-14,1.00\n" * 5000
    with pytest.raises(StatementError, match="longer than 1 MiB or holds NUL") as refused:
        parse(b"d,a\n" + many + row, shape)
    assert refused.value.line == 5002


def test_a_file_of_blank_lines_is_refused() -> None:
    shape = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR"}
    with pytest.raises(StatementError, match="holds no row"):
        list(mapped_csv.read(BytesIO(b"\n\n"), SourceRules(zone="UTC", options=shape)))


def test_a_row_without_a_date_is_quarantined() -> None:
    shape = {"columns": {"occurred": "d", "amount": "a"}, "currency": "EUR"}
    assert parse(b"d,a\n,1.00\n", shape).quarantined[0].reason == "the row has no date"


def test_control_figures_of_a_mixed_file_are_quarantined() -> None:
    rows = [{"column": "d", "equals": "Total", "is": "sum", "figure": "a"}]
    shape = {"columns": {"occurred": "d", "amount": "a", "currency": "c"}, "rows": rows}
    (row,) = parse(b"d,a,c\nTotal,1.00,\n", shape).quarantined
    assert row.reason == "control figures need a declared currency"
