"""Stripe's "Balance change from activity", itemized CSV: one row per balance transaction.

Columns and units: docs.stripe.com/reports/report-types/balance (amounts in major units).
"""

from collections.abc import Iterator
from datetime import UTC, timezone
from operator import itemgetter
from typing import BinaryIO
from zoneinfo import ZoneInfo

from reliability.currencies import STRIPE, UnknownCurrency
from reliability.reconcile.formats.amounts import AmountForm, reader
from reliability.reconcile.formats.base import (
    Declared,
    Item,
    Line,
    Quarantined,
    RowRefused,
    SourceRules,
    StatementError,
    Unit,
    Units,
)
from reliability.reconcile.formats.table import (
    Dialect,
    Row,
    first_header,
    header_index,
    header_row,
    rows,
    whole,
)
from reliability.reconcile.formats.times import NEVER, Moment, moment, zone_of

NEEDED = ("balance_transaction_id", "currency", "gross", "fee", "net", "reporting_category")
REFERENCES = {
    "balance_transaction_id": "balance_transaction",
    "source_id": "source",
    "charge_id": "charge",
    "payment_intent_id": "payment_intent",
    "automatic_payout_id": "payout",
}


def fingerprint(head: bytes) -> bool:
    """Say whether the first line carries the report's columns."""
    names = first_header(head)
    return names.issuperset(NEEDED) and not names.isdisjoint({"created_utc", "created"})


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield the report's lines; it prints no totals, so what it declares comes from ``rules``.

    Presentment is ``customer_facing_*`` where filled. Those amounts are magnitudes; the sign is
    that of ``gross``, and a contradiction is quarantined. Option ``decimal_separator``: ``,``.
    """
    records = rows(stream, Dialect())
    header = header_row(records)
    reader = StripeRow(header, rules)
    for row in records:
        yield reader.line(row)
    yield Declared().or_else(rules.declared)


class StripeRow:
    """Turn one row of Stripe's itemized reports into a line; shared by two of them."""

    def __init__(self, header: Row, rules: SourceRules, *, booked: str = "") -> None:
        """``booked`` names the column (without ``_utc``) of the day that decides coverage."""
        self._index = index = header_index(header, NEEDED)
        self._needed = itemgetter(*(index[name] for name in NEEDED))
        self._width = len(header.values)
        self._zone = zone_of(rules.zone)
        self._units = Units({**STRIPE, **rules.exponents})
        comma = rules.options.get("decimal_separator") == ","
        self._minor = reader(AmountForm(decimal="," if comma else "."))
        self._references = [
            (name, index[column]) for column, name in REFERENCES.items() if column in index
        ]
        self._created = self._clock("created")
        self._available = self._clock("available_on")
        self._booked = self._clock(booked)
        facing = ("customer_facing_amount", "customer_facing_currency")
        self._facing = (
            (index[facing[0]], index[facing[1]]) if {*facing} <= set(index) else None
        )
        if not {"created_utc", "created"} & set(index):
            rule = "the header has neither 'created_utc' nor 'created'"
            raise StatementError(
                header.position, rule, "add created_utc to the report's columns"
            )

    def line(self, row: Row) -> Line | Quarantined:
        """Read one row, or quarantine it with the reason."""
        try:
            return self._line(row)
        except (RowRefused, UnknownCurrency) as error:
            return Quarantined(row.position, row.raw, str(error))

    def _line(self, row: Row) -> Line:
        values = whole(row, self._width)
        own_id, currency, gross_text, fee_text, net_text, category = self._needed(values)
        settled = self._units.of(currency)
        gross = self._minor(gross_text, settled.exponent)
        fee = self._minor(fee_text, settled.exponent)
        net = self._minor(net_text, settled.exponent)
        amount, unit = self._presentment(values, gross, settled)
        occurred = _moment(values, self._created)
        booked = _moment(values, self._booked)
        available = _moment(values, self._available)
        if occurred is NEVER:
            raise RowRefused("the row has no creation time")
        references = {name: values[i] for name, i in self._references if values[i]}
        # In the order of ``Line``: by name, a million of them take half a second longer.
        return Line(
            row.position, row.raw, category, amount, *unit, own_id or None, references,
            gross, *settled, fee, net,
            occurred.at, occurred.day, booked.at, booked.day, available.at, available.day,
            "", references.get("payout"),
        )  # fmt: skip

    def _presentment(self, values: list[str], gross: int, settled: Unit) -> tuple[int, Unit]:
        if self._facing is None:
            return gross, settled
        text, currency = values[self._facing[0]], values[self._facing[1]]
        if not text or not currency:
            return gross, settled
        unit = self._units.of(currency)
        facing = self._minor(text, unit.exponent)
        if facing < 0 < gross:
            raise RowRefused("customer_facing_amount is negative where gross is positive")
        return (-abs(facing) if gross < 0 else facing), unit

    def _clock(self, name: str) -> tuple[int, ZoneInfo | timezone] | None:
        """Find a moment's column: the one in UTC if the report has it, else the local one."""
        if (column := self._index.get(f"{name}_utc")) is not None:
            return column, UTC
        local = self._index.get(name)
        return None if local is None else (local, self._zone)


def _moment(values: list[str], clock: tuple[int, ZoneInfo | timezone] | None) -> Moment:
    return NEVER if clock is None else moment(values[clock[0]], "iso", clock[1])
