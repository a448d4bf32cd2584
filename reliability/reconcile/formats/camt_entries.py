"""One booked entry of a camt.053 statement, taken apart into its details where they add up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from reliability.reconcile.formats.base import Line, RowRefused, Unit
from reliability.reconcile.formats.camt_xml import (
    amount,
    child,
    children,
    raw_of,
    sign,
    text,
    when,
)

_REFERENCES = {
    "end_to_end": ("Refs", "EndToEndId"),
    "transaction": ("Refs", "TxId"),
    "instruction": ("Refs", "InstrId"),
    "mandate": ("Refs", "MndtId"),
    "bank": ("Refs", "AcctSvcrRef"),
    "message": ("Refs", "MsgId"),
    "payment_information": ("Refs", "PmtInfId"),
    "creditor": ("RmtInf", "Strd", "CdtrRefInf", "Ref"),
}
_NO_REFERENCE = frozenset({"", "NOTPROVIDED"})


@dataclass(frozen=True)
class Entry:
    """An ``Ntry`` element, its place in the file and the source's zone."""

    element: etree._Element
    position: int
    zone: str


def entry_lines(entry: Entry, table: Mapping[str, int]) -> Iterator[Line]:
    """Yield the lines of one entry: none if it is not booked, several for a batch.

    ``RvslInd`` changes nothing: ``CdtDbtInd`` is the direction of the reversal itself.
    """
    status = text(entry.element, "Sts", "Cd") or text(entry.element, "Sts")
    if status != "BOOK":
        return
    found, unit = amount(child(entry.element, "Amt"), table)
    total = sign(entry.element) * found
    details = [
        one
        for group in children(entry.element, "NtryDtls")
        for one in children(group, "TxDtls")
    ]
    parts = [_detail_amount(one, entry, unit, table) for one in details]
    known = [part for part in parts if part is not None]
    if len(details) <= 1 or len(known) < len(details):
        yield _line(entry, details, (total, unit))
        return
    yield from _batch(entry, details, known, (total, unit), table)


def _batch(
    entry: Entry,
    details: Sequence[etree._Element],
    parts: Sequence[int],
    whole: tuple[int, Unit],
    table: Mapping[str, int],
) -> Iterator[Line]:
    total, unit = whole
    kept = total - sum(parts)
    if kept and abs(kept) != _charges(entry, details, unit, table):
        raise RowRefused(f"the details come to {sum(parts)}, the entry to {total} minor units")
    for detail, part in zip(details, parts, strict=True):
        yield _line(entry, [detail], (part, unit))
    if kept:
        yield _line(entry, [], (kept, unit))._replace(kind="charges")


def _charges(
    entry: Entry, details: Sequence[etree._Element], unit: Unit, table: Mapping[str, int]
) -> int:
    """Add up the charges the bank declares on the entry, or else on its details."""
    for owners in ([entry.element], details):
        records = [one for owner in owners for one in children(owner, "Chrgs")]
        if not records:
            continue
        amounts = [
            amount(child(one, "Amt"), table)
            for record in records
            for one in (children(record, "Rcrd") or [record])
        ]
        if any(found_unit != unit for _, found_unit in amounts):
            raise RowRefused("charges are in another currency than the entry")
        return sum(found for found, _ in amounts)
    return 0


def _detail_amount(
    detail: etree._Element, entry: Entry, unit: Unit, table: Mapping[str, int]
) -> int | None:
    """Give a detail's signed amount in the entry's currency, ``None`` if it states none."""
    element = child(detail, "Amt")
    if element is None:
        element = child(detail, "AmtDtls", "TxAmt", "Amt")
    if element is None:
        return None
    found, found_unit = amount(element, table)
    if found_unit != unit:
        return None
    direction = detail if child(detail, "CdtDbtInd") is not None else entry.element
    return sign(direction) * found


def _line(entry: Entry, details: Sequence[etree._Element], money: tuple[int, Unit]) -> Line:
    total, unit = money
    booked = when(child(entry.element, "BookgDt"), entry.zone)
    available = when(child(entry.element, "ValDt"), entry.zone)
    if booked.at is None and booked.day is None:
        raise RowRefused("the entry has no booking date")
    reference = text(entry.element, "AcctSvcrRef") or text(entry.element, "NtryRef")
    references = {"entry": reference} if reference else {}
    for detail in details[:1] if len(details) == 1 else []:
        for name, path in _REFERENCES.items():
            if (value := text(detail, *path)) not in _NO_REFERENCE:
                references[name] = value
    return Line(
        position=entry.position,
        raw=raw_of(details[0] if len(details) == 1 else entry.element),
        kind=_kind(entry.element),
        amount_minor=total,
        currency=unit.currency,
        exponent=unit.exponent,
        references=references,
        booked_at=booked.at,
        booked_day=booked.day,
        available_at=available.at,
        available_day=available.day,
        status="BOOK",
        group=reference or None,
    )


def _kind(element: etree._Element) -> str:
    """Name the bank transaction code: domain-family-subfamily, or the bank's own."""
    code = child(element, "BkTxCd")
    family = child(code, "Domn", "Fmly")
    parts = (text(code, "Domn", "Cd"), text(family, "Cd"), text(family, "SubFmlyCd"))
    return "-".join(part for part in parts if part) or text(code, "Prtry", "Cd") or "entry"
