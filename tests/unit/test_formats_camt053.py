"""camt.053: details that add up, charges made explicit, booked balances, no bombs."""

from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path

import pytest
from lxml import etree

from reliability.reconcile.formats import camt053, read
from reliability.reconcile.formats.base import (
    Balance,
    Line,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)

DATA = (Path(__file__).parents[1] / "statements" / "camt053_batch.xml").read_bytes()
EUR = Unit("EUR", 2)


def parse(data: bytes = DATA) -> list[Statement]:
    return gather(read("camt053", BytesIO(data), SourceRules(zone="Europe/Amsterdam")))


def test_a_batch_is_its_details_and_what_the_bank_kept_is_a_line_of_its_own() -> None:
    lines = parse()[0].lines[:3]
    assert [(line.kind, line.amount_minor) for line in lines] == [
        ("PMNT-RCDT-ESCT", 100000),
        ("PMNT-RCDT-ESCT", 50000),
        ("charges", -2600),
    ]
    assert [line.position for line in lines] == [1, 1, 1]
    assert {line.group for line in lines} == {"BATCH-7"}
    assert lines[0].references == {"entry": "BATCH-7", "end_to_end": "ord-1"}
    assert lines[1].references == {"entry": "BATCH-7"}
    assert (lines[0].booked_day, lines[0].available_day) == (
        date(2026, 10, 25),
        date(2026, 10, 26),
    )


def test_details_that_do_not_add_up_quarantine_the_entry() -> None:
    (row,) = parse()[0].quarantined
    assert row.position == 4
    assert row.reason == "the details come to 25000, the entry to 30000 minor units"
    (_, unexplained) = parse(DATA.replace(b'<Rcrd><Amt Ccy="EUR">6.00</Amt></Rcrd>', b""))[
        0
    ].quarantined
    assert unexplained.position == 4


def test_the_direction_of_a_reversal_is_its_own() -> None:
    reversal = parse()[0].lines[3]
    assert (reversal.amount_minor, reversal.kind) == (-1000, "544")
    assert reversal.booked_at == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert reversal.booked_day is None
    assert reversal.references == {"end_to_end": "ord-9", "mandate": "M-1", "creditor": "RF18"}


def test_pending_entries_are_no_lines() -> None:
    assert len(parse()[0].lines) == 4


def test_only_booked_balances_count_and_a_debit_balance_is_negative() -> None:
    declared = parse()[0].declared
    assert declared.opening == (Balance(minor=-10000, unit=EUR, day=date(2026, 10, 24)),)
    assert declared.closing == (Balance(minor=136400, unit=EUR, day=date(2026, 10, 25)),)
    assert (declared.account, declared.sequence) == ("NL00OWNB0123456789", 298)
    assert declared.reference == "OWN-STMT-298"


def test_the_period_is_local_days_also_on_a_day_of_25_hours() -> None:
    declared = parse()[0].declared
    assert (declared.first_day, declared.last_day) == (date(2026, 10, 25), date(2026, 10, 25))


def test_declared_entries_are_held_against_rows() -> None:
    """Four entries: one gave three rows, one is pending and gave none."""
    found = parse()[0]
    assert found.declared.count == 5 == len(found.lines) + len(found.quarantined)


def test_each_statement_has_its_own_account_and_a_further_page_is_a_missing_end() -> None:
    first, second = parse()
    assert (first.declared.trailer, second.declared.trailer) == (True, False)
    assert second.declared.account == "US-OWN-1"
    assert second.declared.opening[0].unit == Unit("USD", 2)
    assert second.lines == ()


def test_names_are_local_so_no_namespace_reads_the_same() -> None:
    bare = DATA.replace(b' xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"', b"")
    assert [line.amount_minor for line in parse(bare)[0].lines] == [
        100000,
        50000,
        -2600,
        -1000,
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"<CdtDbtInd>DBIT</CdtDbtInd><RvslInd>", b"<RvslInd>", "neither CRDT nor DBIT"),
        (b">10.00<", b">12..34<", "'12..34'"),
        (b">10.00<", b">-10.00<", "signed although"),
        (b">10.00<", b">10.005<", "more decimals"),
        (b'Amt Ccy="EUR">10.00<', b'Amt Ccy="EUX">10.00<', "'EUX'"),
        (b'<Amt Ccy="EUR">10.00</Amt>', b"", "no amount"),
        (b"<BookgDt><DtTm>2026-10-25T02:30:00+01:00</DtTm></BookgDt>", b"", "no booking date"),
        (b"02:30:00+01:00", b"26:30:00+01:00", "not a date"),
    ],
)
def test_an_entry_that_cannot_be_read_whole_is_quarantined(
    old: bytes, new: bytes, reason: str
) -> None:
    assert old in DATA
    row = parse(DATA.replace(old, new, 1))[0].quarantined[0]
    assert row.position == 2
    assert reason in row.reason
    assert "<RvslInd>true</RvslInd>" in row.raw


def test_details_in_another_currency_leave_the_entry_whole() -> None:
    data = DATA.replace(b'<Amt Ccy="EUR">1000.00</Amt>', b'<Amt Ccy="SEK">11500.00</Amt>')
    line = parse(data)[0].lines[0]
    assert (line.amount_minor, line.references) == (147400, {"entry": "BATCH-7"})


@pytest.mark.parametrize(
    ("name", "what"),
    [(b"BkToCstmrAcctRpt", "camt.052"), (b"BkToCstmrDbtCdtNtfctn", "camt.054")],
)
def test_interim_reports_and_notifications_are_refused(name: bytes, what: str) -> None:
    with pytest.raises(StatementError, match=what) as refused:
        parse(DATA.replace(b"BkToCstmrStmt", name))
    assert refused.value.line == 3


BOMB = b"""<?xml version="1.0"?><!DOCTYPE Document [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<Document><BkToCstmrStmt><Stmt><Id>&b;</Id></Stmt></BkToCstmrStmt></Document>"""


def test_a_document_type_declaration_is_refused_before_any_entity() -> None:
    with pytest.raises(StatementError, match="document type declaration"):
        parse(BOMB)
    outside = b'<!DOCTYPE Document SYSTEM "http://127.0.0.1:9/x.dtd"><Document><BkToCstmrStmt/></Document>'
    with pytest.raises(StatementError, match="document type declaration"):
        parse(outside)


def test_a_cut_or_empty_document_is_refused() -> None:
    with pytest.raises(StatementError, match="XML is broken") as refused:
        parse(DATA[:2000])
    assert refused.value.line > 1
    with pytest.raises(StatementError, match="holds no statement"):
        parse(b"<Document><BkToCstmrStmt/></Document>")


def test_an_entry_is_freed_once_it_is_read() -> None:
    statement = etree.fromstring(
        b"<Stmt><Id>1</Id><Ntry><Amt/></Ntry><Ntry><Amt/></Ntry></Stmt>"
    )
    camt053._forget(statement[2])
    assert etree.tostring(statement) == b"<Stmt><Id>1</Id><Ntry/></Stmt>"


def test_a_long_statement_is_read_entry_by_entry() -> None:
    start = DATA.index(b"<Ntry>")
    entry = DATA[start : DATA.index(b"</Ntry>") + len(b"</Ntry>")]
    big = BytesIO(DATA[:start] + entry * 2000 + DATA[start:])
    items = read("camt053", big, SourceRules(zone="UTC"))
    next(items)
    assert big.tell() < len(big.getvalue()) / 2
    assert sum(isinstance(item, Line) for item in items) == 6003


def test_charges_in_another_currency_quarantine_the_entry() -> None:
    data = DATA.replace(
        b'<Rcrd><Amt Ccy="EUR">20.00</Amt>', b'<Rcrd><Amt Ccy="USD">20.00</Amt>'
    )
    assert "another currency" in parse(data)[0].quarantined[0].reason


def test_balances_and_periods_that_cannot_be_read_are_left_unsaid() -> None:
    data = DATA.replace(b'<Amt Ccy="EUR">100.00</Amt>', b'<Amt Ccy="EUR">1OO.00</Amt>')
    declared = parse(data.replace(b"<FrDtTm>2026-10-25T", b"<FrDtTm>2026-13-25T"))[0].declared
    assert declared.opening == ()
    assert (declared.first_day, declared.last_day) == (None, date(2026, 10, 25))
