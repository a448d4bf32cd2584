"""Finding things in an ISO 20022 document by local names, whatever the namespace."""

from collections.abc import Mapping
from datetime import date, timedelta

from lxml import etree

from reliability.currencies import UnknownCurrency, exponent_of
from reliability.reconcile.formats.amounts import AmountForm, minor
from reliability.reconcile.formats.base import Balance, RowRefused, Unit
from reliability.reconcile.formats.times import NEVER, Moment, moment, zone_of

_POINT = AmountForm()
_SIGNS = {"CRDT": 1, "DBIT": -1}


def local(element: etree._Element) -> str:
    """Give the element's name without its namespace."""
    return str(etree.QName(element).localname)


def children(element: etree._Element | None, name: str) -> list[etree._Element]:
    """List the direct children of that local name."""
    return [] if element is None else [one for one in element if local(one) == name]


def child(element: etree._Element | None, *path: str) -> etree._Element | None:
    """Follow a path of local names, always to the first match."""
    for name in path:
        element = next(iter(children(element, name)), None)
    return element


def text(element: etree._Element | None, *path: str) -> str:
    """Give the text at the end of a path; absent is empty."""
    found = child(element, *path)
    return "" if found is None else (found.text or "").strip()


def raw_of(element: etree._Element) -> str:
    """Write an element out again, for keeping."""
    return etree.tostring(element, encoding="unicode", with_tail=False)


def amount(element: etree._Element | None, table: Mapping[str, int]) -> tuple[int, Unit]:
    """Read an amount element with its ``Ccy``; the sign stands elsewhere."""
    if element is None:
        raise RowRefused("there is no amount")
    currency = element.get("Ccy") or ""
    unit = Unit(currency, exponent_of(currency, table))
    found = minor((element.text or "").strip(), _POINT, unit.exponent)
    if found < 0:
        raise RowRefused("the amount is signed although CdtDbtInd gives the sign")
    return found, unit


def sign(element: etree._Element | None) -> int:
    """Read ``CdtDbtInd``: credit is +1, debit is -1, anything else refuses the row."""
    word = text(element, "CdtDbtInd")
    if word not in _SIGNS:
        raise RowRefused(f"CdtDbtInd {word!r} is neither CRDT nor DBIT")
    return _SIGNS[word]


def when(element: etree._Element | None, zone: str) -> Moment:
    """Read a date choice: ``Dt`` stays a day, ``DtTm`` is an instant."""
    found = text(element, "Dt") or text(element, "DtTm")
    return moment(found, "iso", zone_of(zone)) if found else NEVER


def days(period: etree._Element | None, zone: str) -> tuple[date | None, date | None]:
    """Read ``FrToDt`` as local days; an end at midnight belongs to the day before."""
    try:
        start = moment(text(period, "FrDtTm") or text(period, "FrDt"), "iso", zone_of(zone))
        end = moment(text(period, "ToDtTm") or text(period, "ToDt"), "iso", zone_of(zone))
    except RowRefused:
        return None, None
    first = start.day or (start.at.astimezone(zone_of(zone)).date() if start.at else None)
    if end.at is None:
        return first, end.day
    local_end = end.at.astimezone(zone_of(zone))
    return first, (local_end - timedelta(microseconds=1)).date()


def balance(element: etree._Element | None, table: Mapping[str, int]) -> Balance | None:
    """Read a ``Bal``; one that cannot be read whole is none."""
    if element is None:
        return None
    try:
        found, unit = amount(child(element, "Amt"), table)
        day = when(child(element, "Dt"), "UTC").day
        return Balance(minor=sign(element) * found, unit=unit, day=day)
    except (RowRefused, UnknownCurrency):
        return None
