"""Stripe's payout reconciliation: each line belongs to a payout and is booked with it."""

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from reliability.reconcile.formats import identify, read
from reliability.reconcile.formats.base import SourceRules, StatementError, gather

DATA = (Path(__file__).parents[1] / "statements" / "stripe_payout.csv").read_bytes()


def test_lines_are_grouped_by_payout_and_booked_when_it_takes_effect() -> None:
    (found,) = gather(read("stripe-payout-csv", BytesIO(DATA), SourceRules(zone="UTC")))
    assert [(line.group, line.net_minor) for line in found.lines] == [
        ("po_7", 9710),
        ("po_7", -4000),
        ("po_8", 951),
    ]
    assert found.lines[0].booked_at == datetime(2026, 10, 14, tzinfo=UTC)
    assert found.lines[0].occurred_at == datetime(2026, 10, 11, 9, tzinfo=UTC)
    assert found.lines[0].references["payout"] == "po_7"


def test_it_is_told_apart_from_the_balance_report() -> None:
    assert identify(DATA) == "stripe-payout-csv"
    balance = DATA.replace(b"automatic_payout_effective_at_utc", b"other")
    assert identify(balance) == "stripe-balance-csv"
    with pytest.raises(StatementError, match="it seems to be stripe-balance-csv"):
        list(read("stripe-payout-csv", BytesIO(balance), SourceRules(zone="UTC")))
