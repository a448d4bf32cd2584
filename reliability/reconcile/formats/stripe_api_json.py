"""Stripe balance transactions as ``GET /v1/balance_transactions`` answers them.

One list page or one object a line, or one document that fills the file. Amounts are minor units
(docs.stripe.com/api/balance_transactions/object); fees are positive when we pay.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO

from reliability.currencies import STRIPE, UnknownCurrency, exponent_of
from reliability.reconcile.formats.amounts import minor_units
from reliability.reconcile.formats.base import (
    Declared,
    Item,
    Line,
    Mode,
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
from reliability.reconcile.formats.times import epoch


def fingerprint(head: bytes) -> bool:
    """Say whether the file is JSON that holds balance transactions."""
    compact = head.replace(b" ", b"")
    return starts_object(head) and b'"object":"balance_transaction"' in compact


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield one line per balance transaction; the last page must say that no more follow.

    ``position`` is the n-th transaction. Presentment is that of ``source`` where it was expanded.
    """
    declared, position = Declared(), 0
    for number, document in documents(stream):
        records, more = _records(document, number)
        if more is not None:
            declared = replace(declared, trailer=not more)
        for record in records:
            position += 1
            _refuse_other_mode(record, rules.mode, number)
            yield _read_line(record, position, {**STRIPE, **rules.exponents})
    yield declared.or_else(rules.declared)


def _records(
    document: Mapping[str, object], number: int
) -> tuple[list[Mapping[str, object]], bool | None]:
    match document:
        case {"object": "list", "data": list(data), "has_more": bool(more)}:
            return [record_of(record) for record in data], more
        case {"object": "balance_transaction"}:
            return [document], None
    rule = "the document is neither a list page nor a balance transaction"
    raise StatementError(number, rule, "store the API's answers as they came")


def _refuse_other_mode(record: Mapping[str, object], mode: Mode, number: int) -> None:
    live = record.get("livemode")
    if isinstance(live, bool) and live != (mode == "live"):
        rule = f"a transaction with livemode {live} in a {mode} statement"
        raise StatementError(number, rule, "fetch it with the other mode's key")


def _read_line(
    record: Mapping[str, object], position: int, table: Mapping[str, int]
) -> Line | Quarantined:
    try:
        return _line(record, position, table)
    except (RowRefused, UnknownCurrency) as error:
        return Quarantined(position, raw_of(record), str(error))


def _line(record: Mapping[str, object], position: int, table: Mapping[str, int]) -> Line:
    if record.get("object") != "balance_transaction":
        raise RowRefused("the record is no balance transaction")
    settled = _unit(record, table)
    gross = minor_units(record.get("amount"))
    amount, unit, references = _source(record, (gross, settled), table)
    return Line(
        position=position,
        raw=raw_of(record),
        kind=text_of(record, "reporting_category") or text_of(record, "type"),
        amount_minor=amount,
        currency=unit.currency,
        exponent=unit.exponent,
        provider_id=text_of(record, "id") or None,
        references=references,
        settled_minor=gross,
        settled_currency=settled.currency,
        settled_exponent=settled.exponent,
        fee_minor=minor_units(record.get("fee")),
        net_minor=minor_units(record.get("net")),
        occurred_at=epoch(record.get("created")),
        available_at=epoch(record.get("available_on")),
        status=text_of(record, "status"),
    )


def _unit(record: Mapping[str, object], table: Mapping[str, int]) -> Unit:
    code = text_of(record, "currency").upper()
    return Unit(code, exponent_of(code, table))


def _source(
    record: Mapping[str, object], settled: tuple[int, Unit], table: Mapping[str, int]
) -> tuple[int, Unit, dict[str, str]]:
    """Give presentment amount, unit and references; an expanded source has its own amount."""
    gross, unit = settled
    references = {"balance_transaction": text_of(record, "id")}
    source = record.get("source")
    if isinstance(source, str):
        return gross, unit, {**references, "source": source}
    expanded = record_of(source)
    for field, name in (
        ("id", "source"),
        ("charge", "charge"),
        ("payment_intent", "payment_intent"),
    ):
        if isinstance(value := expanded.get(field), str):
            references[name] = value
    if "amount" not in expanded or not expanded.get("currency"):
        return gross, unit, references
    facing = abs(minor_units(expanded["amount"]))
    return (-facing if gross < 0 else facing), _unit(expanded, table), references
