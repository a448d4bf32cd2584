"""Stripe's balance transactions by API: minor units, epoch seconds, pages that must end."""

import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import SourceRules, Statement, StatementError, gather

SAMPLE = Path(__file__).parents[1] / "statements" / "stripe_api_pages.jsonl"


def parse(data: bytes, **rules: Any) -> Statement:
    (only,) = gather(read("stripe-api-json", BytesIO(data), SourceRules(zone="UTC", **rules)))
    return only


def test_amounts_are_minor_units_and_times_epoch_seconds() -> None:
    line = parse(SAMPLE.read_bytes()).lines[0]
    assert (line.provider_id, line.kind, line.status) == ("txn_C1", "charge", "available")
    assert (line.amount_minor, line.fee_minor, line.net_minor) == (2500, 103, 2397)
    assert (line.currency, line.exponent) == ("EUR", 2)
    assert line.occurred_at == datetime(2026, 10, 14, 6, tzinfo=UTC)
    assert line.references == {"balance_transaction": "txn_C1", "source": "ch_C1"}


def test_an_expanded_source_gives_presentment_and_references() -> None:
    _, yen, refund = parse(SAMPLE.read_bytes()).lines
    assert (yen.amount_minor, yen.currency, yen.exponent) == (5000, "JPY", 0)
    assert (yen.settled_minor, yen.settled_currency) == (3052, "EUR")
    assert yen.references["payment_intent"] == "pi_C2"
    assert (refund.amount_minor, refund.settled_minor) == (-2500, -2500)
    assert refund.references == {
        "balance_transaction": "txn_C3",
        "source": "re_C3",
        "charge": "ch_C1",
    }


def test_a_fraction_of_a_minor_unit_is_quarantined() -> None:
    (row,) = parse(SAMPLE.read_bytes()).quarantined
    assert row.position == 4
    assert "12.5" in row.reason
    assert json.loads(row.raw)["id"] == "txn_C4"


def test_pages_that_do_not_end_are_declared_cut() -> None:
    assert parse(SAMPLE.read_bytes()).declared.trailer is True
    first = SAMPLE.read_bytes().splitlines(keepends=True)[0]
    assert parse(first).declared.trailer is False


ONE: dict[str, Any] = {
    "id": "txn_1",
    "object": "balance_transaction",
    "amount": 100,
    "available_on": 1234567890,
    "created": 1234567890,
    "currency": "usd",
    "fee": 0,
    "net": 100,
    "source": None,
    "status": "available",
    "type": "charge",
}


def one(**changes: Any) -> bytes:
    return json.dumps({**ONE, **changes}).encode()


def test_objects_alone_or_indented_are_read_and_declare_no_end() -> None:
    lines = one() + b"\n\n" + one(id="txn_2") + b"\n"
    assert [line.provider_id for line in parse(lines).lines] == ["txn_1", "txn_2"]
    assert parse(lines).declared.trailer is None
    indented = json.dumps(ONE, indent=2).encode()
    assert parse(indented).lines[0].amount_minor == 100


def test_a_transaction_of_the_other_mode_refuses_the_file() -> None:
    with pytest.raises(StatementError, match="livemode False in a live statement"):
        parse(one(livemode=False))
    assert len(parse(one(livemode=False), mode="test").lines) == 1


@pytest.mark.parametrize(
    "changes",
    [{"currency": "zzz"}, {"currency": 5}, {"created": "now"}, {"amount": "a"}, {"fee": None}],
)
def test_a_transaction_that_cannot_be_read_whole_is_quarantined(
    changes: dict[str, Any],
) -> None:
    found = parse(one(**changes))
    assert (len(found.lines), len(found.quarantined)) == (0, 1)


def test_another_object_in_the_list_is_quarantined() -> None:
    page = {"object": "list", "has_more": False, "data": [ONE, {"object": "charge"}]}
    found = parse(json.dumps(page).encode())
    assert [row.reason for row in found.quarantined] == [
        "the record is no balance transaction"
    ]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (one() + b'\n{"object":"charge"}\n', "neither a list page nor"),
        (one() + b"\n{", "does not end"),
        (one() + b"\n{\n" + b"}x\n" * 50, "no valid JSON"),
        (b'{"object": "balance_transaction", "a": \xff}', "0xff"),
    ],
)
def test_documents_that_are_not_whole_refuse_the_file(data: bytes, rule: str) -> None:
    with pytest.raises(StatementError, match=rule):
        parse(data)
