"""SWIFT MT940 customer statements, block by block, read with the library ``mt-940``.

Fields: SWIFT User Handbook, Category 9, MT 940. The library has every fix switched on (reversals of
credits are debits) and, where a Dutch bank writes an IBAN into the customer reference, its wider tag.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import BinaryIO

import mt940

from reliability.currencies import ISO_4217, UnknownCurrency, exponent_of
from reliability.reconcile.formats.amounts import AmountForm, minor
from reliability.reconcile.formats.base import (
    Balance,
    Declared,
    Item,
    Line,
    Quarantined,
    RowRefused,
    SourceRules,
    StatementError,
    Unit,
)
from reliability.reconcile.formats.table import not_text, text_lines

BLOCK_LINES_MAX = 500_000
_TAG = re.compile(r":(\d\d[A-Z]?):", re.ASCII)
_INTERIM = frozenset({"34F", "90D", "90C"})
_NO_REFERENCE = frozenset({"", "NONREF"})
_POINT = AmountForm()
# The library logs the field it cannot read; statements do not belong in logs.
logging.getLogger("mt940").setLevel(logging.CRITICAL)


def fingerprint(head: bytes) -> bool:
    """Say whether the file has SWIFT tags ``:20:`` and ``:25:`` at the start of lines."""
    tags = re.search(rb"^:20:", head, re.MULTILINE) and re.search(
        rb"^:25[A-Z]?:", head, re.MULTILINE
    )
    return bool(tags) and not_text(head) is None


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield each block's entries, then its balances; one block is held in memory.

    Raises :class:`StatementError` for an interim report (MT942). Option ``encoding``.
    """
    encoding = rules.options.get("encoding", "utf-8")
    found = False
    for block in _blocks(text_lines(stream, encoding if isinstance(encoding, str) else "")):
        found = True
        _refuse_interim(block)
        yield from _read_block(block, {**ISO_4217, **rules.exponents}, rules)
    if not found:
        raise StatementError(1, "no statement block (:20:) in the file", "fetch it again")


@dataclass
class _Block:
    """The text of one statement, and where its entries stand."""

    start: int
    lines: list[str] = field(default_factory=list)
    entries: list[tuple[int, list[str]]] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)

    def add(self, number: int, text: str) -> None:
        """Take the next line; an entry keeps its ``:61:``, ``:86:`` and their continuations."""
        self.lines.append(text)
        if len(self.lines) > BLOCK_LINES_MAX:
            raise StatementError(
                number, "a block is too long", "ask the bank for smaller files"
            )
        if tag := _TAG.match(text):
            self.tags.add(tag[1])
            if tag[1] == "61":
                self.entries.append((number, []))
        if self.entries and not (tag and tag[1] not in ("61", "86")):
            self.entries[-1][1].append(text)


def _blocks(lines: Iterator[str]) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.startswith(":20:"):
            if block is not None:
                yield block
            block = _Block(number)
        if block is None:
            continue
        if text in ("-", "-\x03") or text.startswith("-}"):
            yield block
            block = None
        else:
            block.add(number, text)
    if block is not None:
        yield block


def _refuse_interim(block: _Block) -> None:
    if block.tags & _INTERIM and not any(tag.startswith(("60", "62")) for tag in block.tags):
        rule = "this is an interim report (MT942), not a statement"
        raise StatementError(block.start, rule, "fetch the end-of-day statement (MT940)")


def _read_block(block: _Block, table: Mapping[str, int], rules: SourceRules) -> Iterator[Item]:
    parsed = _parsed(block)
    count = 0 if parsed is None else len(parsed)
    if parsed is None or count != len(block.entries):
        reason = f"the block's {len(block.entries)} entries could not be told apart"
        for position, raw in block.entries or [(block.start, block.lines)]:
            yield Quarantined(position, "\n".join(raw), reason)
        yield Declared(trailer=False).or_else(rules.declared)
        return
    for (position, raw), entry in zip(block.entries, parsed, strict=True):
        yield _item(position, "\n".join(raw), entry.data, table)
    yield _declared(block, parsed.data, table).or_else(rules.declared)


def _parsed(block: _Block) -> mt940.models.Transactions | None:
    """Parse with the standard tag, then with the Dutch one; ``None`` if neither reads it."""
    text = "\n".join(block.lines)
    dutch = mt940.tags.StatementASNB()
    choices: tuple[dict[int | str, mt940.tags.Tag], ...] = ({}, {dutch.id: dutch})
    for tags in choices:
        try:
            (parsed,) = mt940.parse_statements(text, tags=tags, options=mt940.Options.all())
        except (RuntimeError, ValueError, ArithmeticError, TypeError, AttributeError):
            continue
        return parsed
    return None


def _item(
    position: int, raw: str, data: Mapping[str, object], table: Mapping[str, int]
) -> Line | Quarantined:
    try:
        return _line(position, raw, data, table)
    except (RowRefused, UnknownCurrency) as error:
        return Quarantined(position, raw, str(error))


def _line(
    position: int, raw: str, data: Mapping[str, object], table: Mapping[str, int]
) -> Line:
    unit, amount = _money(data.get("amount"), table)
    value_day = _day(data.get("date"))
    return Line(
        position=position,
        raw=raw,
        kind=str(data.get("id") or "").strip() or "entry",
        amount_minor=amount,
        currency=unit.currency,
        exponent=unit.exponent,
        references=_references(data),
        booked_day=_day(data.get("entry_date")) or value_day,
        available_day=value_day,
        status=str(data.get("status") or ""),
    )


def _references(data: Mapping[str, object]) -> dict[str, str]:
    names = {
        "customer": "customer_reference",
        "bank": "bank_reference",
        "end_to_end": "end_to_end_reference",
        "statement": "transaction_reference",
    }
    texts = {name: str(data.get(key) or "").strip() for name, key in names.items()}
    # A field the library does not know runs on: EREF ends where four letters and + or : begin.
    texts["end_to_end"] = re.split(r"[A-Z]{4}[+:]", texts["end_to_end"], maxsplit=1)[0].strip()
    return {name: text for name, text in texts.items() if text not in _NO_REFERENCE}


def _money(amount: object, table: Mapping[str, int]) -> tuple[Unit, int]:
    if not isinstance(amount, mt940.models.Amount) or not isinstance(amount.amount, Decimal):
        raise RowRefused("the entry has no amount")
    currency = str(amount.currency or "")
    unit = Unit(currency, exponent_of(currency, table))
    return unit, minor(format(amount.amount, "f"), _POINT, unit.exponent)


def _day(value: object) -> date | None:
    return date(value.year, value.month, value.day) if isinstance(value, date) else None


def _declared(block: _Block, data: Mapping[str, object], table: Mapping[str, int]) -> Declared:
    """Balances belong to their block; a block without its closing balance is cut."""
    opening = _balance(data, "opening", table)
    closing = _balance(data, "closing", table)
    number = str(data.get("statement_number") or "")
    whole = "final_opening_balance" in data
    return Declared(
        opening=(opening,) if opening else (),
        closing=(closing,) if closing else (),
        last_day=closing.day if closing else None,
        account=str(data.get("account_identification") or "").strip() or None,
        sequence=int(number) if whole and number.isdecimal() and int(number) else None,
        reference=str(data.get("transaction_reference") or "").strip() or None,
        trailer=any(tag.startswith("62") for tag in block.tags),
    )


def _balance(
    data: Mapping[str, object], which: str, table: Mapping[str, int]
) -> Balance | None:
    for name in (f"final_{which}_balance", f"intermediate_{which}_balance"):
        balance = data.get(name)
        if isinstance(balance, mt940.models.Balance):
            try:
                unit, amount = _money(balance.amount, table)
            except (RowRefused, UnknownCurrency):
                return None
            return Balance(minor=amount, unit=unit, day=_day(balance.date))
    return None
