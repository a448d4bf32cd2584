"""Stripe's "Balance change from activity", itemized CSV: one row per balance transaction.

Columns and units: docs.stripe.com/reports/report-types/balance (amounts in major units).
"""

from collections.abc import Iterator
from datetime import UTC
from typing import BinaryIO

from reliability.reconcile.exponents import STRIPE, UnknownCurrency, exponent_of
from reliability.reconcile.formats.amounts import AmountForm, minor
from reliability.reconcile.formats.base import (
    Declared,
    Item,
    Line,
    Quarantined,
    RowRefused,
    SourceRules,
    StatementError,
    Unit,
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
_POINT, _COMMA = AmountForm(), AmountForm(decimal=",")


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
        self._booked = booked
        self._width = len(header.values)
        self._zone = zone_of(rules.zone)
        self._table = {**STRIPE, **rules.exponents}
        self._form = _COMMA if rules.options.get("decimal_separator") == "," else _POINT
        self._references = [
            (name, index[column]) for column, name in REFERENCES.items() if column in index
        ]
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
        values, at = whole(row, self._width), self._index
        settled = self._unit(values[at["currency"]])
        gross = minor(values[at["gross"]], self._form, settled.exponent)
        amount, unit = self._presentment(values, gross, settled)
        occurred, available = (
            self._moment(values, "created"),
            self._moment(values, "available_on"),
        )
        booked = self._moment(values, self._booked)
        if occurred == NEVER:
            raise RowRefused("the row has no creation time")
        references = {name: values[i] for name, i in self._references if values[i]}
        return Line(
            position=row.position,
            raw=row.raw,
            kind=values[at["reporting_category"]],
            amount_minor=amount,
            currency=unit.currency,
            exponent=unit.exponent,
            provider_id=values[at["balance_transaction_id"]] or None,
            references=references,
            settled_minor=gross,
            settled_currency=settled.currency,
            settled_exponent=settled.exponent,
            fee_minor=minor(values[at["fee"]], self._form, settled.exponent),
            net_minor=minor(values[at["net"]], self._form, settled.exponent),
            occurred_at=occurred.at,
            occurred_day=occurred.day,
            booked_at=booked.at,
            booked_day=booked.day,
            available_at=available.at,
            available_day=available.day,
            group=references.get("payout"),
        )

    def _unit(self, currency: str) -> Unit:
        code = currency.upper()
        return Unit(code, exponent_of(code, self._table))

    def _presentment(self, values: list[str], gross: int, settled: Unit) -> tuple[int, Unit]:
        text = self._optional(values, "customer_facing_amount")
        currency = self._optional(values, "customer_facing_currency")
        if not text or not currency:
            return gross, settled
        unit = self._unit(currency)
        facing = minor(text, self._form, unit.exponent)
        if facing < 0 < gross:
            raise RowRefused("customer_facing_amount is negative where gross is positive")
        return (-abs(facing) if gross < 0 else facing), unit

    def _moment(self, values: list[str], name: str) -> Moment:
        if text := self._optional(values, f"{name}_utc"):
            return moment(text, "iso", UTC)
        if text := self._optional(values, name):
            return moment(text, "iso", self._zone)
        return NEVER

    def _optional(self, values: list[str], name: str) -> str:
        column = self._index.get(name)
        return "" if column is None else values[column]
