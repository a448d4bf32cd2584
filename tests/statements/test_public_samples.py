"""Public sample statements give their expected facts; they lie outside the project, or nowhere."""

import json
from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from reliability.reconcile.formats import identify, read
from reliability.reconcile.formats.base import (
    Identities,
    Item,
    SourceRules,
    Statement,
    StatementError,
    gather,
)
from reliability.reconcile.gates import Gate, Judgement, footing_gate, judge, parse_gate
from reliability.reconcile.tally import Tally

ROOT = Path(__file__).parents[3] / "shared" / "data" / "statements"
pytestmark = pytest.mark.skipif(
    not ROOT.is_dir(), reason="no public samples beside the project"
)


def parse(name: str, file: str, **options: Any) -> list[Statement]:
    rules = SourceRules(zone="Europe/Amsterdam", options=options)
    with (ROOT / file).open("rb") as stream:
        return gather(read(name, stream, rules))


def gates(statement: Statement) -> list[Gate]:
    tally = Tally()
    items: list[Item] = [*statement.lines, *statement.quarantined]
    for item in items:
        tally.add(item)
    return [footing_gate(statement.declared, tally), parse_gate(tally, 0)]


def judgements(statements: list[Statement]) -> list[Judgement]:
    return [judge(gates(statement)) for statement in statements]


def amounts(statement: Statement) -> list[int]:
    return [line.amount_minor for line in statement.lines]


# MT940.


def test_two_abn_amro_statements_neither_of_which_foots() -> None:
    found = parse("mt940", "mt940/abnamro_two_statements.sta")
    assert [len(one.lines) for one in found] == [8, 2]
    assert [sum(amounts(one)) for one in found] == [-32144, -2449]
    assert judgements(found) == ["INCOMPLETE", "INCOMPLETE"]


def test_the_swift_envelope_holds_31_statements_that_all_foot() -> None:
    found = parse("mt940", "mt940/asnb_swift_envelope.txt")
    assert len(found) == 31
    # The list of expected facts says 23 empty; the file has 26 blocks without a :61: line.
    assert sum(not one.lines for one in found) == 26
    assert sum(len(one.lines) for one in found) == 8
    assert set(judgements(found)) == {"COMPLETE"}


def test_the_30th_of_february_does_not_crash() -> None:
    (found,) = parse("mt940", "mt940/february_30.sta")
    assert amounts(found) == [-600]
    assert found.lines[0].booked_day == date(2016, 3, 1)
    assert judgements([found]) == ["COMPLETE"]


def test_26_statements_foot_when_reversed_credits_are_debits() -> None:
    found = parse("mt940", "mt940/sepa_mt940_many.sta")
    assert (len(found), sum(len(one.lines) for one in found)) == (26, 97)
    assert set(judgements(found)) == {"COMPLETE"}
    assert -20488 in amounts(found[0])


def test_an_intraday_report_is_refused() -> None:
    with pytest.raises(StatementError, match="MT942"):
        parse("mt940", "mt940/mbank_mt942_intraday.sta")


def test_dos_line_ends_and_four_rabobank_statements() -> None:
    (ing,) = parse("mt940", "_extra/mt940/ing_dos_crlf.txt")
    assert sum(amounts(ing)) == 468 - 5027
    rabobank = parse("mt940", "_extra/mt940/rabobank_multi.txt")
    assert [amounts(one) for one in rabobank] == [
        [-121328],
        [],
        [-4495, -23656],
        [-8810, -620],
    ]
    assert judgements(rabobank) == ["INCOMPLETE", "COMPLETE", "INCOMPLETE", "COMPLETE"]


# CAMT.053.


def test_two_statements_in_one_document_both_foot() -> None:
    found = parse("camt053", "camt053/genkgo_multi_statement.xml")
    assert [amounts(one) for one in found] == [[885], [-700]]
    assert judgements(found) == ["COMPLETE", "COMPLETE"]


def test_each_currency_has_its_own_totals() -> None:
    euro, dollar = parse("camt053", "camt053/bsp_multicurrency.xml")
    assert (amounts(euro), amounts(dollar)) == ([125050, -50025], [-9999])
    assert (euro.declared.closing[0].minor, dollar.declared.closing[0].minor) == (
        1075025,
        240001,
    )
    assert judgements([euro, dollar]) == ["COMPLETE", "COMPLETE"]


def test_a_garbled_amount_is_quarantined_and_the_statement_incomplete() -> None:
    (found,) = parse("camt053", "camt053/bsp_garbled_amount.xml")
    assert (found.lines, len(found.quarantined)) == ((), 1)
    assert "'12..34'" in found.quarantined[0].reason
    assert judgements([found]) == ["INCOMPLETE"]


def test_other_shapes_of_camt053_are_read() -> None:
    (bare,) = parse("camt053", "_extra/camt053/bsp_no_namespace.xml")
    assert (amounts(bare), judgements([bare])) == ([25000], ["COMPLETE"])
    (fine,) = parse("camt053", "_extra/camt053/genkgo_five_decimals.xml")
    assert amounts(fine) == [885]
    (many,) = parse("camt053", "_extra/camt053/genkgo_all_balance_types.xml")
    assert [b.minor for b in (*many.declared.opening, *many.declared.closing)] == [101, 404]
    (v8,) = parse("camt053", "_extra/camt053/genkgo_v8.xml")
    assert v8.lines[0].booked_at == datetime(2014, 12, 31, 12, 15, tzinfo=UTC)


# Providers.


def test_gocardless_items_are_two_although_equal_and_45_minor_units_each() -> None:
    fixture = json.loads((ROOT / "gocardless" / "payout_items.json").read_text())
    page = BytesIO(json.dumps(fixture["list"]["body"]).encode())
    options = {"currency": "EUR", "day": "2026-10-14"}
    rules = SourceRules(zone="Europe/London", options=options)
    (found,) = gather(read("gocardless-payout-items", page, rules))
    assert amounts(found) == [45, 45]
    seen = Identities()
    assert [seen.of(line).occurrence for line in found.lines] == [1, 2]


def test_stripe_objects_are_minor_units_and_epoch_seconds() -> None:
    objects = json.loads((ROOT / "stripe" / "openapi_fixture_objects.json").read_text())
    stream = BytesIO(json.dumps(objects["balance_transaction"]).encode())
    (found,) = gather(read("stripe-api-json", stream, SourceRules(zone="UTC")))
    (line,) = found.lines
    assert (line.amount_minor, line.currency, line.exponent) == (100, "USD", 2)
    assert line.occurred_at == datetime(2009, 2, 13, 23, 31, 30, tzinfo=UTC)
    (charge,) = parse("stripe-api-json", "_extra/stripe/balance_transaction_dj.json")
    assert (charge.lines[0].amount_minor, charge.lines[0].net_minor) == (2000, 1912)
    (dispute,) = parse("stripe-api-json", "_extra/stripe/dispute_txn_dj.json")
    assert (dispute.lines[0].amount_minor, dispute.lines[0].fee_minor) == (-1000, 1500)


PAYMENTS: dict[str, Any] = {
    "columns": {
        "id": "id", "occurred": "created", "amount": "amount", "currency": "currency",
        "mode": "mode",
    },
    "dates": "%Y-%m-%d %H:%M",
    "live": ["Live"],
    "test": ["Test"],
}  # fmt: skip


def test_only_live_rows_of_a_mixed_export_may_be_reconciled() -> None:
    with pytest.raises(StatementError, match="line 2: a row of mode 'Test'"):
        parse("mapped-csv", "stripe/payments_export_all_columns.csv", **PAYMENTS)
    skip = [{"column": "mode", "equals": "Test", "is": "skip"}]
    (found,) = parse(
        "mapped-csv", "stripe/payments_export_all_columns.csv", **PAYMENTS, rows=skip
    )
    assert [line.provider_id for line in found.lines] == ["ch_1IVbR2BI9JK85yVZUofVdX4R"]
    assert amounts(found) == [1000]


def test_a_dashboard_export_is_not_taken_for_the_balance_report() -> None:
    for file in (
        "stripe/payments_export_all_columns.csv",
        "_extra/stripe/payments_export_default.csv",
    ):
        with pytest.raises(StatementError, match="not a stripe-balance-csv statement"):
            parse("stripe-balance-csv", file)


# Mapped CSV.


def test_a_paypal_byte_order_mark_is_not_in_the_first_header() -> None:
    columns = {"occurred": "Date", "amount": "Gross", "currency": "Currency"}
    columns |= {"id": "Transaction ID", "kind": "Type", "fee": "Fee", "net": "Net"}
    (found,) = parse(
        "mapped-csv", "paypal/bom_utf8_file.csv", columns=columns, dates=PAYPAL_DATES
    )
    assert len(found.lines) + len(found.quarantined) == 1
    assert len(found.lines) == 1


PAYPAL_DATES = "%m/%d/%Y"


def test_parentheses_are_negative() -> None:
    (found,) = parse(
        "mapped-csv",
        "bank_csv/parentheses_negative.csv",
        header=["kind", "day", "text", "amount"],
        columns={"occurred": "day", "amount": "amount", "kind": "kind"},
        dates="%Y/%m/%d",
        currency="USD",
        negative="parentheses",
        marks=["$"],
    )
    assert amounts(found) == [-8500, -2000, -700, 352000, 155852, 23, -96, -11622, 210500]
    assert found.quarantined == ()


def test_an_opening_balance_row_is_no_line() -> None:
    (found,) = parse(
        "mapped-csv",
        "bank_csv/extratofake_opening_row_crlf.csv",
        encoding="latin-1",
        columns={"occurred": "Data", "amount": "Valor"},
        references={"document": "Número do documento"},
        rows=[
            {
                "column": "Histórico",
                "equals": "Saldo Anterior",
                "is": "opening",
                "figure": "Valor",
            },
            {"column": "Histórico", "equals": "S A L D O", "is": "closing", "figure": "Valor"},
        ],
        dates="%m/%d/%Y",
        currency="BRL",
    )
    assert found.declared.opening[0].minor == 10000
    assert amounts(found)[:3] == [10000, 10000, 100000]
    assert found.quarantined == ()


def test_ubs_apostrophes_and_rows_out_of_order() -> None:
    (found,) = parse(
        "mapped-csv",
        "bank_csv/ubs_apostrophe_thousands.csv",
        separator=";",
        thousands="'",
        columns={
            "occurred": "Date de valeur",
            "currency": "Monn.",
            "debit": "Débit",
            "credit": "Crédit",
            "balance": "Solde",
        },
        references={"transaction": "N° de transaction"},
        dates="%d.%m.%Y",
    )
    assert amounts(found) == [-1000, 24000, -20000]
    assert [b.minor for b in (*found.declared.opening, *found.declared.closing)] == [
        1138394,
        1141394,
    ]
    assert judgements([found]) == ["COMPLETE"]


SEMICOLONS: dict[str, Any] = {"separator": ";", "decimal": ",", "thousands": "."}


def test_semicolons_and_decimal_commas() -> None:
    (nordea,) = parse(
        "mapped-csv",
        "_extra/bank_csv/danish_nordea.csv",
        **SEMICOLONS,
        header=["day", "text", "interest", "amount", "balance"],
        columns={"occurred": "day", "amount": "amount"},
        dates="%d-%m-%Y",
        currency="DKK",
    )
    assert amounts(nordea) == [-4800, -7900, 49790, -99500, -345290, -65500]
    (gls,) = parse(
        "mapped-csv",
        "_extra/bank_csv/gls_latin1.csv",
        **SEMICOLONS,
        encoding="latin-1",
        columns={"occurred": "Buchungstag", "amount": "Betrag", "currency": "Währung"},
        dates="%d.%m.%Y",
    )
    assert amounts(gls) == [-9876]
    (french,) = parse(
        "mapped-csv",
        "_extra/bank_csv/invalid_header_example.csv",
        **SEMICOLONS,
        preamble_rows_max=5,
        columns={
            "occurred": "Date de l'opération",
            "amount": "Montant de l'opération",
            "currency": "Devise",
        },
        dates="%d/%m/%Y",
    )
    assert amounts(french) == [5000, -810]


def test_a_format_that_is_not_built_yet_is_named_unknown() -> None:
    for file in ("ofx/empty_balance.ofx", "_extra/mollie/settlements_list.json"):
        assert identify((ROOT / file).read_bytes()) is None
