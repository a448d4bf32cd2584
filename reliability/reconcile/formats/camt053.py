"""ISO 20022 camt.053 bank statements, any version: own reader on lxml, by local names.

Elements: ISO 20022 Message Definition Report, Bank-to-Customer Cash Management. A document type
declaration is refused, entities are not resolved, nothing is fetched.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from lxml import etree

from reliability.currencies import ISO_4217, UnknownCurrency
from reliability.reconcile.formats.base import (
    Declared,
    Item,
    Quarantined,
    RowRefused,
    SourceRules,
    StatementError,
)
from reliability.reconcile.formats.camt_entries import Entry, entry_lines
from reliability.reconcile.formats.camt_xml import balance, child, days, local, raw_of, text
from reliability.reconcile.formats.table import not_text

_MESSAGES = {
    "BkToCstmrAcctRpt": "an interim report (camt.052)",
    "BkToCstmrDbtCdtNtfctn": "a debit or credit notification (camt.054)",
}


def fingerprint(head: bytes) -> bool:
    """Say whether the file is XML of the camt family; ``read`` tells which of them."""
    family = (b"BkToCstmrStmt", *(name.encode() for name in _MESSAGES))
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return not_text(head) is None and start[:1] == b"<" and any(n in head for n in family)


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield each statement's booked entries, then its booked balances.

    A batch entry gives one line per detail when they add up, with a line ``charges`` for what the
    bank kept. ``position`` is the n-th entry of the file. One entry is held in memory.
    Pending and informational entries are not lines.
    """
    table = {**ISO_4217, **rules.exponents}
    position, statement, found = 0, _Statement(rules), False
    try:
        for event, element in _parse(stream):
            name = local(element)
            if event == "start":
                _refuse_another_message(element, name)
            elif name == "Ntry":
                position += 1
                yield from statement.entry(element, position, table)
                _forget(element)
            elif name == "Stmt":
                yield statement.declared(element, table)
                statement, found = _Statement(rules), True
                _forget(element)
    except etree.XMLSyntaxError as error:
        rule = f"the XML is broken: {error.msg}"
        remedy = "the file may be cut; fetch it again"
        raise StatementError(error.lineno or 0, rule, remedy) from None
    if not found:
        raise StatementError(1, "the document holds no statement", "fetch it again")


def _parse(stream: BinaryIO) -> Iterator[tuple[str, etree._Element]]:
    names = ("Document", *_MESSAGES, "Stmt", "Ntry")
    yield from etree.iterparse(
        stream,
        events=("start", "end"),
        tag=[f"{{*}}{name}" for name in names],
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def _refuse_another_message(element: etree._Element, name: str) -> None:
    info = element.getroottree().docinfo
    if name == "Document" and (info.doctype or info.internalDTD is not None):
        rule = "the XML has a document type declaration"
        raise StatementError(1, rule, "statements need none: ask the bank for a plain file")
    if name in _MESSAGES:
        rule = f"this is {_MESSAGES[name]}, not a statement"
        raise StatementError(element.sourceline or 1, rule, "fetch the end-of-day camt.053")


def _forget(element: etree._Element) -> None:
    """Free what has been read, or the tree grows with the file."""
    element.clear()
    parent, name = element.getparent(), local(element)
    while parent is not None and (before := element.getprevious()) is not None:
        if local(before) != name:
            return
        parent.remove(before)


class _Statement:
    """What is known of the statement in hand."""

    def __init__(self, rules: SourceRules) -> None:
        self._rules = rules
        self._entries = 0
        self._rows = 0

    def entry(
        self, element: etree._Element, position: int, table: Mapping[str, int]
    ) -> Iterator[Item]:
        """Read one ``Ntry``; what cannot be read whole is one quarantined row."""
        self._entries += 1
        items: list[Item]
        try:
            items = list(entry_lines(Entry(element, position, self._rules.zone), table))
        except (RowRefused, UnknownCurrency) as error:
            items = [Quarantined(position, raw_of(element), str(error))]
        self._rows += len(items)
        yield from items

    def declared(self, element: etree._Element, table: Mapping[str, int]) -> Declared:
        """Take the booked balances only; available and forward ones prove nothing."""
        found = {code: one for one in element if (code := _balance_code(one))}
        opening = balance(found.get("OPBD", found.get("PRCD")), table)
        closing = balance(found.get("CLBD"), table)
        first, last = days(child(element, "FrToDt"), self._rules.zone)
        account = child(element, "Acct", "Id")
        number = text(element, "ElctrncSeqNb")
        return Declared(
            opening=(opening,) if opening else (),
            closing=(closing,) if closing else (),
            count=self._count(text(element, "TxsSummry", "TtlNtries", "NbOfNtries")),
            first_day=first,
            last_day=last or (closing.day if closing else None),
            account=text(account, "IBAN") or text(account, "Othr", "Id") or None,
            sequence=int(number) if number.isdecimal() else None,
            reference=text(element, "Id") or None,
            trailer=text(element, "StmtPgntn", "LastPgInd") != "false",
        ).or_else(self._rules.declared)

    def _count(self, said: str) -> int | None:
        """Entries are declared, rows are counted: a batch of three is one entry, three rows."""
        return int(said) + self._rows - self._entries if said.isdecimal() else None


def _balance_code(element: etree._Element) -> str:
    return text(element, "Tp", "CdOrPrtry", "Cd") if local(element) == "Bal" else ""
