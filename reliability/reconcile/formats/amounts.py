"""Amounts as providers write them, read whole or refused; a form is declared, never guessed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Literal

from reliability.reconcile.formats.base import RowRefused

Negative = Literal["minus", "parentheses", "trailing minus"]

_AMOUNT_CHARACTERS_MAX = 40


@dataclass(frozen=True)
class AmountForm:
    """How one column writes numbers: decimal mark, thousands mark, minus form, unit marks.

    ``marks`` are texts such as ``$`` or ``EUR`` that may stand before or after the digits.
    """

    decimal: str = "."
    thousands: str = ""
    negative: Negative = "minus"
    marks: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The whole of an amount in this form; anything else is no amount."""
        sep, dec = re.escape(self.thousands), re.escape(self.decimal)
        grouped = rf"\d{{1,3}}(?:{sep}\d{{3}})+|" if self.thousands else ""
        mark = "|".join(re.escape(mark) for mark in self.marks)
        before, after = (rf"(?:(?:{mark})\s?)?", rf"(?:\s?(?:{mark}))?") if mark else ("", "")
        digits = rf"{before}(?P<whole>{grouped}\d*)(?:{dec}(?P<part>\d*))?{after}"
        return re.compile(rf"\s*{_SIGNED[self.negative].format(digits=digits)}\s*", re.ASCII)


_SIGNED: dict[Negative, str] = {
    "minus": "(?P<sign>[+-]?){digits}",
    "parentheses": r"(?P<sign>\(?){digits}(?P<close>\)?)",
    "trailing minus": "{digits}(?P<sign>[+-]?)",
}


def reader(form: AmountForm) -> Callable[[str, int], int]:
    """Give :func:`minor` for one form, remembering 32 768 amounts: prices and fees repeat a lot."""

    @lru_cache(maxsize=32_768)
    def read(text: str, exponent: int) -> int:
        return minor(text, form, exponent)

    return read


def minor(text: str, form: AmountForm, exponent: int) -> int:
    """Turn an amount in major units into signed minor units.

    Raises :class:`RowRefused` for any text the form does not cover whole, and for decimals
    beyond ``exponent`` unless they are zeros.
    """
    found = form.pattern.fullmatch(text) if len(text) <= _AMOUNT_CHARACTERS_MAX else None
    if found is None:
        raise RowRefused(f"{text!r} is not an amount in the declared form")
    whole, part = found["whole"], found["part"] or ""
    if not (whole or part) or (form.negative == "parentheses" and not _balanced(found)):
        raise RowRefused(f"{text!r} is not an amount in the declared form")
    if part[exponent:].strip("0"):
        raise RowRefused(f"{text!r} has more decimals than its currency has ({exponent})")
    if form.thousands:
        whole = whole.replace(form.thousands, "")
    units = int(whole + part[:exponent].ljust(exponent, "0") or "0")
    return -units if found["sign"] in ("-", "(") else units


def _balanced(found: re.Match[str]) -> bool:
    return (found["sign"] == "(") == (found["close"] == ")")


def minor_units(value: object) -> int:
    """Take a figure that is in minor units already: an int, or text or Decimal of one.

    "45.0" is 45 minor units; "45.5" is refused, and so is a binary float.
    """
    match value:
        case bool() | float():
            raise RowRefused(f"{value!r} is not an exact number of minor units")
        case int():
            return value
        case str() if re.fullmatch(r"-?\d{1,18}(?:\.0*)?", value, re.ASCII):
            return int(value.partition(".")[0])
        case Decimal() if value.is_finite() and value == value.to_integral_value():
            return int(value)
        case _:
            raise RowRefused(f"{value!r} is not an exact number of minor units")
