"""Adyen's Settlement details report (CSV): one row per settled modification, fee or transfer.

Columns: docs.adyen.com/reporting/settlement-reconciliation/transaction-level/settlement-details-report.
Amounts are in major units with Adyen's own decimals; times carry a zone label each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from reliability.currencies import ADYEN, UnknownCurrency, exponent_of
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
from reliability.reconcile.formats.json_documents import raw_of
from reliability.reconcile.formats.table import (
    Dialect,
    Row,
    first_header,
    header_index,
    header_row,
    rows,
    whole,
)
from reliability.reconcile.formats.times import NEVER, Moment, label_offset, moment

NEEDED = (
    "Merchant Account", "Psp Reference", "Creation Date", "TimeZone", "Type",
    "Modification Reference", "Gross Currency", "Gross Debit (GC)", "Gross Credit (GC)",
    "Net Currency", "Net Debit (NC)", "Net Credit (NC)", "Commission (NC)", "Markup (NC)",
    "Scheme Fees (NC)", "Interchange (NC)", "Batch Number",
)  # fmt: skip
_FEES = ("Commission (NC)", "Markup (NC)", "Scheme Fees (NC)", "Interchange (NC)")
_REFERENCES = {
    "Psp Reference": "psp",
    "Merchant Reference": "merchant",
    "Modification Reference": "modification",
    "Modification Merchant Reference": "modification_merchant",
}
_POINT = AmountForm()


def fingerprint(head: bytes) -> bool:
    """Say whether the first line carries the report's columns (31 or 34 of them, or more)."""
    return first_header(head).issuperset(NEEDED)


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield each batch's rows, then its ``Declared``: a whole batch comes to zero.

    Fees, the payout and balances carried between batches (``Balancetransfer``) are rows of the
    batch, so they are lines too. Option ``gross_column``: ``credit`` (what we earn stands in the
    credit column, the default) or ``debit``; the footing gate shows when it is wrong.
    """
    records = rows(stream, Dialect())
    reader = _Reader(header_row(records), rules)
    batch: _Batch | None = None
    for row in records:
        item, number, account = reader.read(row)
        if batch is not None and number and number != batch.number:
            yield batch.declared().or_else(rules.declared)
            batch = None
        if batch is None:
            batch = _Batch(number, account)
        batch.add(item, account, row.position)
        yield item
    yield (batch or _Batch("", "")).declared().or_else(rules.declared)


@dataclass
class _Batch:
    """What is known of the batch in hand."""

    number: str
    account: str
    units: set[Unit] = field(default_factory=set)

    def add(self, item: Line | Quarantined, account: str, position: int) -> None:
        """Note the settlement currency; rows of two merchants in a batch are refused."""
        if account and self.account and account != self.account:
            rule = f"rows of merchant accounts {self.account} and {account} in one batch"
            raise StatementError(position, rule, "export one merchant account")
        self.number = self.number or (item.group or "" if isinstance(item, Line) else "")
        self.account = self.account or account
        if isinstance(item, Line):
            self.units.add(item.settlement_unit)

    def declared(self) -> Declared:
        """The report's own rule: with payout and carry-over, a batch nets to zero."""
        return Declared(
            sums=dict.fromkeys(sorted(self.units), 0),
            account=self.account or None,
            reference=self.number or None,
            sequence=int(self.number)
            if self.number.isascii() and self.number.isdigit()
            else None,
        )


class _Reader:
    """Read rows by header name."""

    def __init__(self, header: Row, rules: SourceRules) -> None:
        self._at = header_index(header, NEEDED)
        self._width = len(header.values)
        self._table = {**ADYEN, **rules.exponents}
        self._inverted = rules.options.get("gross_column", "credit") == "debit"

    def read(self, row: Row) -> tuple[Line | Quarantined, str, str]:
        """Give the item with its batch number and merchant account, empty if unreadable."""
        try:
            values = whole(row, self._width)
            named = {name: values[place].strip() for name, place in self._at.items()}
            batch, account = named["Batch Number"], named["Merchant Account"]
        except RowRefused as error:
            return Quarantined(row.position, row.raw, str(error)), "", ""
        try:
            return self._line(row, named), batch, account
        except (RowRefused, UnknownCurrency) as error:
            return Quarantined(row.position, row.raw, str(error)), batch, account

    def _line(self, row: Row, named: Mapping[str, str]) -> Line:
        settled = self._unit(named["Net Currency"])
        net = self._between(named, "Net", settled)
        if net is None:
            raise RowRefused("neither net debit nor net credit is filled")
        gross, unit = self._gross(named)
        amount, unit = (net, settled) if gross is None or unit is None else (gross, unit)
        fee = None if gross is None else self._fee(named, settled)
        created = self._moment(named, "Creation Date", "TimeZone")
        if created == NEVER:
            raise RowRefused("the row has no creation date")
        booked = self._moment(named, "Booking Date", "Booking Date TimeZone")
        return Line(
            position=row.position,
            raw=row.raw,
            kind=named["Type"],
            amount_minor=amount,
            currency=unit.currency,
            exponent=unit.exponent,
            provider_id=_identity(named),
            references={n: named[c] for c, n in _REFERENCES.items() if named.get(c)},
            # The report prints no gross in settlement currency: its own equation gives it.
            settled_minor=amount if unit == settled else net + (fee or 0),
            settled_currency=settled.currency,
            settled_exponent=settled.exponent,
            fee_minor=fee,
            net_minor=net,
            occurred_at=created.at,
            occurred_day=created.day,
            booked_at=booked.at,
            booked_day=booked.day,
            group=named["Batch Number"] or None,
        )

    def _unit(self, currency: str) -> Unit:
        return Unit(currency, exponent_of(currency, self._table))

    def _gross(self, named: Mapping[str, str]) -> tuple[int | None, Unit | None]:
        if not (named["Gross Debit (GC)"] or named["Gross Credit (GC)"]):
            return None, None
        unit = self._unit(named["Gross Currency"])
        gross = self._between(named, "Gross", unit)
        return (-gross if gross is not None and self._inverted else gross), unit

    def _between(self, named: Mapping[str, str], which: str, unit: Unit) -> int | None:
        """Take credit less debit; two filled columns are refused unless one is zero."""
        suffix = "(GC)" if which == "Gross" else "(NC)"
        texts = (named[f"{which} Debit {suffix}"], named[f"{which} Credit {suffix}"])
        if not any(texts):
            return None
        debit, credit = (minor(t, _POINT, unit.exponent) if t else 0 for t in texts)
        if debit and credit:
            raise RowRefused(f"{which.lower()} debit and credit are both filled")
        return credit - debit

    def _fee(self, named: Mapping[str, str], unit: Unit) -> int:
        return sum(minor(named[fee], _POINT, unit.exponent) for fee in _FEES if named[fee])

    def _moment(self, named: Mapping[str, str], column: str, label: str) -> Moment:
        text = named.get(column, "")
        return moment(text, "iso", label_offset(named.get(label, ""))) if text else NEVER


def _identity(named: Mapping[str, str]) -> str | None:
    """A modification settles once in a batch; rows without one are known by content."""
    psp, modification = named["Psp Reference"], named["Modification Reference"]
    if not (psp and modification):
        return None
    return raw_of([named["Batch Number"], named["Type"], psp, modification])
