"""GoCardless payout items: texts of minor units, twins, fractions, and the payout they make."""

import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import (
    Identities,
    SourceRules,
    Statement,
    StatementError,
    Unit,
    gather,
)

DATA = (Path(__file__).parents[1] / "statements" / "gocardless_payout.jsonl").read_bytes()


def parse(data: bytes, **options: object) -> Statement:
    rules = SourceRules(zone="Europe/London", options=options)
    (only,) = gather(read("gocardless-payout-items", BytesIO(data), rules))
    return only


def page(*items: dict[str, Any], after: str | None = None) -> bytes:
    return json.dumps({"payout_items": items, "meta": {"cursors": {"after": after}}}).encode()


ITEM: dict[str, Any] = {
    "amount": "45.0",
    "type": "payment_paid_out",
    "links": {"payment": "PM1"},
}


def test_45_0_is_45_minor_units_in_the_payouts_currency_and_day() -> None:
    line = parse(DATA).lines[4]
    assert (line.amount_minor, line.currency, line.exponent) == (45, "GBP", 2)
    assert (line.booked_day, line.occurred_at) == (date(2026, 10, 14), None)
    assert line.references == {"payment": "PM0003", "payout": "PO0001"}
    assert line.group == "PO0001"


def test_two_items_equal_in_every_field_are_two_lines() -> None:
    found, seen = parse(DATA), Identities()
    occurrences = [seen.of(line).occurrence for line in found.lines[4:6]]
    assert occurrences == [1, 2]


def test_items_and_rounded_fractions_add_up_to_the_payout() -> None:
    found = parse(DATA)
    assert found.declared.sums == {Unit("GBP", 2): 9796}
    assert sum(line.amount_minor for line in found.lines) == 9796
    rounding = found.lines[-1]
    assert (rounding.kind, rounding.amount_minor) == ("rounding", -1)
    assert rounding.raw == "items sum to 9796.2"


def test_only_charges_of_gocardless_may_have_fractions() -> None:
    found = parse(page({**ITEM, "amount": "45.5"}), currency="EUR", day="2026-10-14")
    assert "'45.5'" in found.quarantined[0].reason
    fee = parse(
        page({**ITEM, "amount": "-45.4", "type": "app_fee"}), currency="EUR", day="2026-10-14"
    )
    assert [line.amount_minor for line in fee.lines] == [-45]


@pytest.mark.parametrize("amount", ["x", "NaN", "1e30", None, ""])
def test_a_fee_that_is_no_amount_is_quarantined(amount: object) -> None:
    item = {**ITEM, "amount": amount, "type": "gocardless_fee"}
    found = parse(page(item), currency="EUR", day="2026-10-14")
    assert (len(found.lines), len(found.quarantined)) == (0, 1)


def test_items_without_their_payout_need_a_declared_currency_and_day() -> None:
    assert "neither the payout nor the options" in parse(page(ITEM)).quarantined[0].reason
    assert parse(page(ITEM), currency="SEK", day="2026-10-14").lines[0].currency == "SEK"


def test_pages_that_do_not_end_are_declared_cut() -> None:
    assert parse(DATA).declared.trailer is True
    assert parse(b"".join(DATA.splitlines(keepends=True)[:2])).declared.trailer is False


def test_an_unknown_currency_or_document_refuses_the_file() -> None:
    with pytest.raises(StatementError, match="the payout: currency 'JPY'"):
        parse(DATA.replace(b"GBP", b"JPY"))
    with pytest.raises(StatementError, match="neither a payout nor a page"):
        parse(page(ITEM) + b'\n{"events": []}\n', currency="EUR", day="2026-10-14")
