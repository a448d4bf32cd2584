"""Stripe's itemized balance-change report, with its traps."""

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from reliability.reconcile.formats import read, stripe_balance_csv
from reliability.reconcile.formats.base import (
    Balance,
    Declared,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)

SAMPLES = Path(__file__).parents[1] / "statements"
EUR = Unit("EUR", 2)


def statement(name: str, rules: SourceRules | None = None) -> Statement:
    rules = rules or SourceRules(zone="Europe/Amsterdam")
    with (SAMPLES / name).open("rb") as stream:
        (only,) = gather(read("stripe-balance-csv", stream, rules))
    return only


def test_a_charge_has_its_references_amounts_and_utc_instant() -> None:
    line = statement("stripe_balance.csv").lines[0]
    assert line.provider_id == "txn_A1"
    assert line.references == {
        "balance_transaction": "txn_A1",
        "source": "ch_A1",
        "charge": "ch_A1",
        "payout": "po_1",
    }
    assert (line.kind, line.group, line.position) == ("charge", "po_1", 2)
    assert (line.amount_minor, line.currency, line.exponent) == (2500, "EUR", 2)
    assert (line.settled_minor, line.fee_minor, line.net_minor) == (2500, 103, 2397)
    assert line.occurred_at == datetime(2026, 10, 14, 5, tzinfo=UTC)
    assert line.available_at == datetime(2026, 10, 21, tzinfo=UTC)
    assert line.effect_minor == 2397
    assert line.raw.startswith("txn_A1,")


def test_presentment_is_compared_and_settlement_kept_beside_it() -> None:
    yen, krona = (statement("stripe_balance.csv").lines[n] for n in (1, 3))
    assert (yen.amount_minor, yen.currency, yen.exponent) == (5000, "JPY", 0)
    assert (yen.settled_minor, yen.settlement_unit) == (3052, EUR)
    assert (krona.amount_minor, krona.currency, krona.exponent) == (500, "ISK", 2)


def test_a_row_of_several_physical_lines_keeps_position_and_raw_text() -> None:
    lines = statement("stripe_balance.csv").lines
    assert (lines[1].position, lines[2].position) == (3, 5)
    assert "first line\nsecond line" in lines[1].raw


def test_a_refund_takes_its_sign_from_gross() -> None:
    refund = statement("stripe_balance.csv").lines[2]
    assert (refund.amount_minor, refund.settled_minor) == (-2500, -2500)
    assert refund.references["source"] == "re_A3"


def test_an_unknown_currency_is_quarantined_with_its_line() -> None:
    (row,) = statement("stripe_balance.csv").quarantined
    assert row.position == 7
    assert row.raw.startswith("txn_A5,")
    assert "'XYZ'" in row.reason


def test_a_short_row_is_quarantined_not_padded() -> None:
    found = statement("stripe_balance_cut_row.csv")
    assert [line.provider_id for line in found.lines] == ["txn_A1", "txn_A3"]
    (row,) = found.quarantined
    assert (row.position, row.reason) == (3, "the row has 11 of 15 columns")


def test_a_summary_fetched_beside_the_file_becomes_what_it_declares() -> None:
    assert statement("stripe_balance.csv").declared == Declared()
    summary = Declared(opening=(Balance(minor=0, unit=EUR),), count=6)
    rules = SourceRules(zone="UTC", declared=summary)
    assert statement("stripe_balance.csv", rules).declared == summary


def read_text(text: str, **options: object) -> list[Statement]:
    rules = SourceRules(zone="Europe/Amsterdam", options=options)
    return gather(read("stripe-balance-csv", BytesIO(text.encode()), rules))


HEADER = "balance_transaction_id,created,currency,gross,fee,net,reporting_category\n"


def test_a_local_created_column_is_read_in_the_sources_zone() -> None:
    (found,) = read_text(HEADER + "txn_1,2026-10-14 00:30:00,eur,1.00,0.00,1.00,charge\n")
    assert found.lines[0].occurred_at == datetime(2026, 10, 13, 22, 30, tzinfo=UTC)
    assert (found.lines[0].amount_minor, found.lines[0].currency) == (100, "EUR")


def test_a_row_without_its_time_is_quarantined() -> None:
    (found,) = read_text(HEADER + "txn_1,,eur,1.00,0.00,1.00,charge\n")
    assert [row.reason for row in found.quarantined] == ["the row has no creation time"]


def test_a_decimal_comma_is_taken_only_when_declared() -> None:
    row = 'txn_1,2026-10-14 00:30:00,eur,"1,50","0,00","1,50",charge\n'
    assert read_text(HEADER + row, decimal_separator=",")[0].lines[0].amount_minor == 150
    assert len(read_text(HEADER + row)[0].quarantined) == 1


def test_a_contradicting_sign_is_quarantined() -> None:
    header = HEADER.strip() + ",customer_facing_amount,customer_facing_currency\n"
    (found,) = read_text(
        header + "txn_1,2026-10-14 01:00:00,eur,1.00,0.00,1.00,charge,-1.00,usd\n"
    )
    assert "negative where gross is positive" in found.quarantined[0].reason


def test_broken_quoting_refuses_the_file_naming_the_line() -> None:
    with pytest.raises(StatementError, match="quoting is broken") as refused:
        read_text(HEADER + 'txn_1,2026-10-14 01:00:00,eur,1.00,0.00,1.00,"cha\n')
    assert refused.value.line == 2


def test_a_file_of_another_report_is_refused_by_its_columns() -> None:
    with pytest.raises(StatementError, match="not a stripe-balance-csv"):
        read_text("id,description,amount,currency\nch_1,x,1.00,eur\n")


def test_a_report_without_a_creation_column_is_refused() -> None:
    data = BytesIO(
        (HEADER.replace("created,", "") + "txn_1,eur,1.00,0.00,1.00,charge\n").encode()
    )
    with pytest.raises(StatementError, match="neither 'created_utc' nor 'created'"):
        list(stripe_balance_csv.read(data, SourceRules(zone="UTC")))
