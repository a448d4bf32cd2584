"""Line identity, statement gathering, and refusing a file of another format."""

from datetime import UTC, datetime
from io import BytesIO

import pytest

from reliability.reconcile.formats import FORMATS, identify, read, refuse_another_format
from reliability.reconcile.formats.base import (
    Balance,
    Declared,
    Identities,
    Line,
    Quarantined,
    SourceRules,
    StatementError,
    Unit,
    content_hash,
    gather,
)

LINE = Line(
    position=7,
    raw="the row",
    kind="payment",
    amount_minor=-1250,
    currency="EUR",
    exponent=2,
    references={"a": "1", "b": "2"},
    occurred_at=datetime(2026, 10, 14, tzinfo=UTC),
)


def test_two_equal_rows_are_two_lines_and_the_same_two_next_time() -> None:
    first, again = Identities(), Identities()
    one, two = first.of(LINE), first.of(LINE._replace(position=8))
    assert (one.basis, one.occurrence, two.occurrence) == ("content", 1, 2)
    assert one.key == two.key
    assert [again.of(LINE), again.of(LINE)] == [one, two]


def test_the_providers_id_is_the_identity_where_there_is_one() -> None:
    seen = Identities()
    named = LINE._replace(provider_id="txn_1")
    assert seen.of(named) == ("provider_id", "txn_1", 1)
    assert seen.of(named._replace(amount_minor=1)) == ("provider_id", "txn_1", 2)
    assert seen.of(LINE).occurrence == 1


def test_the_content_hash_is_about_what_is_said_not_how_it_was_written() -> None:
    moved = LINE._replace(position=99, raw='"the row"', references={"b": "2", "a": "1"})
    assert content_hash(moved) == content_hash(LINE)
    for change in (
        {"amount_minor": -1251},
        {"currency": "USD"},
        {"exponent": 3},
        {"kind": "refund"},
        {"references": {"a": "1", "b": "3"}},
        {"occurred_at": datetime(2026, 10, 15, tzinfo=UTC)},
    ):
        assert content_hash(LINE._replace(**change)) != content_hash(LINE)


def test_each_declared_ends_the_statement_before_it() -> None:
    bad = Quarantined(3, "?", "why")
    one, two = gather([LINE, bad, Declared(count=2), Declared(count=0)])
    assert (one.lines, one.quarantined, one.declared.count) == ((LINE,), (bad,), 2)
    assert (two.lines, two.quarantined, two.declared.count) == ((), (), 0)


def test_a_summary_fills_only_what_the_statement_leaves_unsaid() -> None:
    balance = (Balance(minor=1, unit=Unit("EUR", 2)),)
    said = Declared(count=0, trailer=False)
    filled = said.or_else(Declared(count=9, trailer=True, opening=balance, account="acct_1"))
    assert (filled.count, filled.trailer) == (0, False)
    assert (filled.opening, filled.account) == (balance, "acct_1")


@pytest.mark.parametrize(
    ("head", "seems"),
    [
        (b"PK\x03\x04\x14\0", "a zip archive or a spreadsheet"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xff\xfei\0d\0", "UTF-16 text"),
        (b"id,a\0b", "binary data"),
        (b"<?xml version='1.0'?><html/>", "of no known format"),
    ],
)
def test_a_file_that_is_no_statement_is_refused_with_what_it_seems_to_be(
    head: bytes, seems: str
) -> None:
    for name in FORMATS:
        with pytest.raises(StatementError, match=seems) as refused:
            refuse_another_format(name, head)
        assert refused.value.remedy


def test_an_empty_file_and_an_unknown_format_are_refused() -> None:
    with pytest.raises(StatementError, match="the file is empty"):
        list(read("mapped-csv", BytesIO(b""), SourceRules(zone="UTC")))
    with pytest.raises(StatementError, match="'xls' does not exist"):
        refuse_another_format("xls", b"x")


def test_nothing_is_identified_as_nothing() -> None:
    assert identify(b"") is None
    assert identify(b"\0\0") is None
