"""Rows of a declared shape turned into lines, control figures and refusals."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from reliability.currencies import ISO_4217, UnknownCurrency
from reliability.reconcile.formats.amounts import minor_units, reader
from reliability.reconcile.formats.base import (
    Balance,
    Declared,
    Line,
    Quarantined,
    RowRefused,
    SourceRules,
    StatementError,
    Unit,
    Units,
)
from reliability.reconcile.formats.mapping import Mapped, RowRule
from reliability.reconcile.formats.table import Row, header_index, whole
from reliability.reconcile.formats.times import Moment, label_offset, moment, zone_of

Texts = Sequence[str]


class MappedRows:
    """Read rows whose values stand under ``header``; keeps the controls.

    ``declared`` grows as control rows and running balances are met: take it at the end.
    """

    def __init__(self, shape: Mapped, rules: SourceRules, header: Row) -> None:
        index = header_index(header, shape.needed)
        self._shape = shape
        self._rules = rules
        self._zone = zone_of(rules.zone)
        self._units = Units({**ISO_4217, **rules.exponents})
        self._currency = shape.currency or ""
        self._place = {name: index[column] for name, column in shape.columns.items()}
        self._references = [(name, index[column]) for name, column in shape.references.items()]
        self._row_rules = [(rule, index[rule.column]) for rule in shape.rules]
        self._figures = {r.figure: index[r.figure] for r in shape.rules if r.figure}
        self._width = len(header.values)
        self._amount: Callable[[str, int], int] = reader(shape.form)
        if shape.units == "minor":
            self._amount = lambda text, _exponent: minor_units(text)
        has_trailer = any(rule.meaning == "trailer" for rule in shape.rules)
        self.declared = Declared(trailer=False if has_trailer else None)

    def item(self, row: Row) -> Line | Quarantined | None:
        """Read one row; ``None`` for a control row, a skipped one or one that is not final.

        Raises :class:`StatementError` for a row of the other mode (test in live).
        """
        try:
            for rule, place in self._row_rules:
                if place < len(row.values) and rule.applies(row.values[place]):
                    self._control(rule, row.values)
                    return None
            whole(row, self._width)
            if "mode" in self._place:
                self._refuse_other_mode(row)
            if self._shape.final and self._text(row.values, "status") not in self._shape.final:
                return None
            return self._line(row)
        except (RowRefused, UnknownCurrency) as error:
            return Quarantined(row.position, row.raw, str(error))

    def _line(self, row: Row) -> Line:
        values = row.values
        unit = self._units.of(self._text(values, "currency") or self._currency)
        amount = self._signed(values, unit.exponent)
        occurred, booked, available = self._moments(values)
        if not any((occurred.at, occurred.day, booked.at, booked.day)):
            raise RowRefused("the row has no date")
        if "balance" in self._place:
            self._running_balance(values, amount, unit)
        return Line(
            position=row.position,
            raw=row.raw,
            kind=self._text(values, "kind") or self._shape.kind,
            amount_minor=amount,
            currency=unit.currency,
            exponent=unit.exponent,
            provider_id=self._text(values, "id") or None,
            references={name: values[i] for name, i in self._references if values[i]},
            fee_minor=self._optional(values, "fee", unit.exponent),
            net_minor=self._optional(values, "net", unit.exponent),
            occurred_at=occurred.at,
            occurred_day=occurred.day,
            booked_at=booked.at,
            booked_day=booked.day,
            available_at=available.at,
            available_day=available.day,
            status=self._text(values, "status"),
            group=self._text(values, "group") or None,
        )

    def _text(self, values: Texts, name: str) -> str:
        place = self._place.get(name)
        return "" if place is None else values[place].strip()

    def _moments(self, values: Texts) -> list[Moment]:
        label = self._text(values, "zone")
        zone = label_offset(label) if label else self._zone
        return [
            moment(self._text(values, name), self._shape.dates, zone)
            for name in ("occurred", "booked", "available")
        ]

    def _signed(self, values: Texts, exponent: int) -> int:
        if "amount" in self._place:
            amount = self._amount(self._text(values, "amount"), exponent)
        else:
            amount = self._from_two_columns(values, exponent)
        if "direction" in self._place:
            amount = self._directed(amount, self._text(values, "direction"))
        return -amount if self._shape.inverted else amount

    def _from_two_columns(self, values: Texts, exponent: int) -> int:
        debit, credit = self._text(values, "debit"), self._text(values, "credit")
        if bool(debit) == bool(credit):
            raise RowRefused("one of debit and credit must be filled, and only one")
        amount = self._amount(debit or credit, exponent)
        if amount < 0:
            raise RowRefused("a debit or credit column holds a signed amount")
        return -amount if debit else amount

    def _directed(self, amount: int, word: str) -> int:
        if word not in self._shape.incoming | self._shape.outgoing:
            raise RowRefused(f"direction {word!r} is neither incoming nor outgoing")
        if amount < 0:
            raise RowRefused("the amount is signed although the row names a direction")
        return amount if word in self._shape.incoming else -amount

    def _optional(self, values: Texts, name: str, exponent: int) -> int | None:
        text = self._text(values, name)
        return self._amount(text, exponent) if text else None

    def _refuse_other_mode(self, row: Row) -> None:
        word = self._text(row.values, "mode")
        own = self._shape.live if self._rules.mode == "live" else self._shape.test
        if word in own:
            return
        if word in self._shape.live | self._shape.test:
            rule = f"a row of mode {word!r} in a {self._rules.mode} statement"
            raise StatementError(row.position, rule, "export one mode, or declare a skip rule")
        raise RowRefused(f"mode {word!r} is neither live nor test")

    def _running_balance(self, values: Texts, amount: int, unit: Unit) -> None:
        text = self._text(values, "balance")
        if not text:
            return
        after = Balance(minor=self._amount(text, unit.exponent), unit=unit)
        before = Balance(minor=after.minor - amount, unit=unit)
        first = not self.declared.opening
        if self._shape.newest_first:
            closing = (after,) if first else self.declared.closing
            self.declared = replace(self.declared, opening=(before,), closing=closing)
        else:
            opening = (before,) if first else self.declared.opening
            self.declared = replace(self.declared, opening=opening, closing=(after,))

    def _control(self, rule: RowRule, values: Texts) -> None:
        match rule.meaning:
            case "skip":
                return
            case "trailer":
                self.declared = replace(self.declared, trailer=True)
                return
            case "count":
                count = minor_units(self._figure(rule, values))
                self.declared = replace(self.declared, count=count)
                return
        unit = self._control_unit()
        figure = self._amount(self._figure(rule, values), unit.exponent)
        match rule.meaning:
            case "opening":
                balance = Balance(minor=figure, unit=unit)
                self.declared = replace(self.declared, opening=(balance,))
            case "closing":
                balance = Balance(minor=figure, unit=unit)
                self.declared = replace(self.declared, closing=(balance,))
            case "sum":
                self.declared = replace(self.declared, sums={unit: figure})

    def _figure(self, rule: RowRule, values: Texts) -> str:
        place = self._figures[rule.figure or ""]
        if place >= len(values):
            raise RowRefused(f"the control row has no column {rule.figure!r}")
        return values[place].strip()

    def _control_unit(self) -> Unit:
        """Control figures are in the one declared currency; a mixed file has none."""
        if not self._currency:
            raise RowRefused("control figures need a declared currency")
        return self._units.of(self._currency)
