"""GoCardless payout items as the API answers them, with the payout they make up.

One answer a line: ``GET /payouts/:id`` first (it has amount, currency and day), then the pages of
``GET /payout_items``. Item amounts are texts of minor units with a fraction ("45.0" is 45 pence;
developer.gocardless.com/api-reference, "Payout items").
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import BinaryIO

from reliability.currencies import GOCARDLESS, UnknownCurrency, exponent_of
from reliability.reconcile.formats.amounts import minor_units
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
from reliability.reconcile.formats.json_documents import (
    documents,
    raw_of,
    record_of,
    starts_object,
    text_of,
)
from reliability.reconcile.formats.times import moment, zone_of

#: Only what GoCardless itself charges has fractions of a minor unit.
_FRACTIONAL = frozenset({"gocardless_fee", "app_fee", "revenue_share", "surcharge_fee"})
_AMOUNT_MAX = 10**15


def fingerprint(head: bytes) -> bool:
    """Say whether the file is JSON that begins with a payout or a page of its items."""
    return starts_object(head) and (b'"payout_items"' in head or b'"payouts"' in head)


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield the payout's items, then the payout as what they must add up to.

    Without the payout's own answer, options ``currency`` and ``day`` say what items lack.
    ``position`` is the n-th item. Fractions of fees are summed into one line ``rounding``.
    """
    payout, declared = _declared_payout(rules), Declared()
    reader = _Items(payout)
    for number, document in documents(stream):
        match document:
            case {"payouts": Mapping() as record} if reader.position == 0:
                payout = _payout(record, rules, number)
                reader = _Items(payout)
            case {"payout_items": list(records)}:
                yield from (reader.item(record_of(record)) for record in records)
                declared = replace(declared, trailer=_is_last(document))
            case _:
                rule = "the document is neither a payout nor a page of payout items"
                raise StatementError(number, rule, "store the API's answers as they came")
    if (rounding := reader.rounding()) is not None:
        yield rounding
    yield _finished(payout, declared).or_else(rules.declared)


@dataclass(frozen=True)
class _Payout:
    unit: Unit | None
    day: date | None
    amount_minor: int | None = None
    reference: str | None = None
    account: str | None = None


def _payout(record: Mapping[str, object], rules: SourceRules, number: int) -> _Payout:
    try:
        currency = text_of(record, "currency")
        unit = Unit(currency, exponent_of(currency, {**GOCARDLESS, **rules.exponents}))
        return _Payout(
            unit=unit,
            day=moment(text_of(record, "arrival_date"), "iso", zone_of(rules.zone)).day,
            amount_minor=minor_units(record.get("amount")),
            reference=text_of(record, "id") or None,
            account=text_of(record_of(record.get("links")), "creditor") or None,
        )
    except (RowRefused, UnknownCurrency) as error:
        raise StatementError(
            number, f"the payout: {error}", "fetch the payout again"
        ) from None


def _declared_payout(rules: SourceRules) -> _Payout:
    currency, day = rules.options.get("currency"), rules.options.get("day")
    table = {**GOCARDLESS, **rules.exponents}
    unit = (
        Unit(currency, table[currency])
        if isinstance(currency, str) and currency in table
        else None
    )
    return _Payout(unit, date.fromisoformat(day) if isinstance(day, str) else None)


def _is_last(page: Mapping[str, object]) -> bool:
    """The cursor after the last page is null (or there is none)."""
    return not record_of(record_of(page.get("meta")).get("cursors")).get("after")


def _finished(payout: _Payout, declared: Declared) -> Declared:
    sums: dict[Unit, int] = {}
    if payout.unit is not None and payout.amount_minor is not None:
        sums[payout.unit] = payout.amount_minor
    return replace(
        declared,
        sums=sums,
        last_day=payout.day,
        reference=payout.reference,
        account=payout.account,
    )


class _Items:
    """Read items of one payout and remember the fractions they leave."""

    def __init__(self, payout: _Payout) -> None:
        self._payout = payout
        self._exact = Decimal(0)
        self._whole = 0
        self.position = 0

    def item(self, record: Mapping[str, object]) -> Line | Quarantined:
        """Read one item, or quarantine it with the reason."""
        self.position += 1
        try:
            return self._line(record)
        except RowRefused as error:
            return Quarantined(self.position, raw_of(record), str(error))

    def _line(self, record: Mapping[str, object]) -> Line:
        kind = text_of(record, "type")
        links = record_of(record.get("links"))
        references = {name: value for name, value in links.items() if isinstance(value, str)}
        if self._payout.reference:
            references["payout"] = self._payout.reference
        exact = self._amount(record, kind)
        line = self._made(raw_of(record), kind, int(exact), references)
        self._exact += exact
        self._whole += int(exact)
        return line

    def _made(self, raw: str, kind: str, amount: int, references: Mapping[str, str]) -> Line:
        if self._payout.unit is None or self._payout.day is None:
            raise RowRefused("neither the payout nor the options say currency and day")
        return Line(
            position=self.position,
            raw=raw,
            kind=kind,
            amount_minor=amount,
            currency=self._payout.unit.currency,
            exponent=self._payout.unit.exponent,
            references=references,
            booked_day=self._payout.day,
            group=self._payout.reference,
        )

    def _amount(self, record: Mapping[str, object], kind: str) -> Decimal:
        value = record.get("amount")
        if kind not in _FRACTIONAL:
            return Decimal(minor_units(value))
        try:
            exact = Decimal(text_of(record, "amount"))
        except InvalidOperation:
            raise RowRefused(f"{value!r} is no amount") from None
        if not exact.is_finite() or abs(exact) > _AMOUNT_MAX:
            raise RowRefused(f"{value!r} is no amount")
        return exact

    def rounding(self) -> Line | None:
        """Give what the fractions come to: GoCardless sums first and rounds the total once."""
        off = int(self._exact.quantize(Decimal(1), ROUND_HALF_UP)) - self._whole
        if off == 0:
            return None
        return self._made(f"items sum to {self._exact}", "rounding", off, {})
