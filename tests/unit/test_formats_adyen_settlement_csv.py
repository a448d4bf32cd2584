"""Adyen's settlement details: its own decimals, zone labels per row, batches that net to zero."""

import re
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import (
    Item,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)
from reliability.reconcile.gates import footing_gate
from reliability.reconcile.tally import Tally

DATA = (Path(__file__).parents[1] / "statements" / "adyen_carry_over.csv").read_bytes()
HEAD, *ROWS = DATA.splitlines(keepends=True)
EUR = Unit("EUR", 2)


def parse(data: bytes = DATA, **options: object) -> list[Statement]:
    rules = SourceRules(zone="Europe/Amsterdam", options=options)
    return gather(read("adyen-settlement-csv", BytesIO(data), rules))


def footing(statement: Statement) -> str:
    tally = Tally()
    items: tuple[Item, ...] = (*statement.lines, *statement.quarantined)
    for item in items:
        tally.add(item)
    return footing_gate(statement.declared, tally).verdict


def test_each_batch_is_a_statement_and_nets_to_zero_with_its_carry_over() -> None:
    first, second = parse()
    assert (first.declared.sequence, second.declared.sequence) == (42, 43)
    assert (first.declared.account, first.declared.sums) == ("OwnShop", {EUR: 0})
    assert [line.kind for line in first.lines][::6] == ["Balancetransfer", "MerchantPayout"]
    assert footing(first) == "passed"
    assert footing(second) == "passed"
    (cut,) = parse(HEAD + b"".join(ROWS[:5]))
    assert footing(cut) == "failed"


def test_decimals_are_adyens_own() -> None:
    lines = parse()[0].lines
    peso, escudo = lines[2], lines[4]
    assert (peso.amount_minor, peso.currency, peso.exponent) == (1500000, "CLP", 2)
    assert (escudo.amount_minor, escudo.currency, escudo.exponent) == (1200, "CVE", 0)
    assert (peso.settled_minor, peso.fee_minor, peso.net_minor) == (1500, 45, 1455)
    assert peso.settlement_unit == EUR


def test_a_zone_label_per_row_orders_the_repeated_hour() -> None:
    _, summer, winter, *_ = parse()[0].lines
    assert summer.occurred_at == datetime(2026, 10, 24, 21, 30, tzinfo=UTC)
    assert winter.occurred_at == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    (row,) = parse()[1].quarantined
    assert (row.position, row.reason) == (10, "zone label 'XYT' is not known")


def test_a_refund_is_negative_and_its_fee_is_still_a_cost() -> None:
    refund = parse()[0].lines[3]
    assert (refund.amount_minor, refund.fee_minor, refund.net_minor) == (-4000, 10, -4010)
    assert refund.references == {
        "psp": "PSP0000000000001",
        "merchant": "ord-1",
        "modification": "MOD0000000000003",
    }
    assert refund.provider_id == '["42","Refunded","PSP0000000000001","MOD0000000000003"]'


def test_fee_and_transfer_rows_have_no_gross_and_no_id() -> None:
    fee = parse()[0].lines[5]
    assert (fee.kind, fee.amount_minor, fee.fee_minor) == ("Fee", -145, None)
    assert fee.provider_id is None


def test_a_file_with_gross_in_the_other_column_foots_only_when_declared() -> None:
    row = b"Own,OwnShop,P1,o,visa,2026-10-25 09:00:00,CET,Settled,M1,EUR,10.00,,1,EUR,,9.90,0.10,,,,v,,7,\n"
    out = b"Own,OwnShop,,,,2026-10-25 23:05:00,CET,MerchantPayout,Payout,EUR,,,1,EUR,9.90,,,,,,,,7,\n"
    (undeclared,), (declared,) = (
        parse(HEAD + row + out),
        parse(HEAD + row + out, gross_column="debit"),
    )
    assert (footing(undeclared), footing(declared)) == ("failed", "passed")
    assert declared.lines[0].amount_minor == 1000


def change(column: int, value: bytes, row: int = 1) -> bytes:
    fields = ROWS[row].split(b",")
    fields[column] = value
    return HEAD + b",".join(fields)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (10, b"1.00", "gross debit and credit are both filled"),
        (14, b"1.00", "net debit and credit are both filled"),
        (15, b"", "neither net debit nor net credit"),
        (13, b"QQQ", "'QQQ'"),
        (5, b"", "no creation date"),
        (11, b"1,00", "the row has 25 of 24 columns"),
    ],
)
def test_a_row_that_contradicts_itself_is_quarantined(
    column: int, value: bytes, reason: str
) -> None:
    (found,) = parse(change(column, value))
    assert len(found.quarantined) == 1
    assert re.search(reason, found.quarantined[0].reason)


def test_rows_of_two_merchant_accounts_are_refused() -> None:
    with pytest.raises(StatementError, match="OwnShop and OtherShop in one batch") as refused:
        parse(HEAD + ROWS[0] + change(1, b"OtherShop").removeprefix(HEAD))
    assert refused.value.line == 3


def test_a_batch_number_that_is_no_number_is_kept_as_text() -> None:
    (found,) = parse(change(22, b"B-7"))
    assert (found.declared.reference, found.declared.sequence) == ("B-7", None)


def test_a_file_of_headers_only_declares_nothing() -> None:
    (found,) = parse(HEAD)
    assert (found.lines, found.declared.sums) == ((), {})
