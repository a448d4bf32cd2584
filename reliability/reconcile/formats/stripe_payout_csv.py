"""Stripe's "Payout reconciliation", itemized CSV: the balance transactions of each payout.

Columns: docs.stripe.com/reports/report-types/payout-reconciliation (amounts in major units).
"""

from collections.abc import Iterator
from typing import BinaryIO

from reliability.reconcile.formats.base import Declared, Item, SourceRules
from reliability.reconcile.formats.stripe_balance_csv import NEEDED, StripeRow
from reliability.reconcile.formats.table import (
    Dialect,
    first_header,
    header_index,
    header_row,
    rows,
)

_EFFECTIVE = "automatic_payout_effective_at"


def fingerprint(head: bytes) -> bool:
    """Say whether the first line has the balance columns and the payout's own."""
    names = first_header(head)
    effective = {_EFFECTIVE, f"{_EFFECTIVE}_utc"}
    return (
        names.issuperset({*NEEDED, "automatic_payout_id"})
        and not names.isdisjoint(effective)
        and not names.isdisjoint({"created_utc", "created"})
    )


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield the lines, each grouped by its payout and booked when the payout takes effect.

    The report prints no totals; the payouts' amounts, fetched beside it, come from ``rules``.
    """
    records = rows(stream, Dialect())
    header = header_row(records)
    header_index(header, ["automatic_payout_id"])
    reader = StripeRow(header, rules, booked=_EFFECTIVE)
    for row in records:
        yield reader.line(row)
    yield Declared().or_else(rules.declared)
