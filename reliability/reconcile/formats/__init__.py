"""Statement formats by name, and what an unknown file seems to be."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from reliability.reconcile.formats import (
    adyen_settlement_csv,
    camt053,
    gocardless_payout_items,
    json_lines,
    mapped_csv,
    mt940,
    stripe_api_json,
    stripe_balance_csv,
    stripe_payout_csv,
)
from reliability.reconcile.formats.base import (
    Item,
    SourceRules,
    StatementError,
    StatementFormat,
)
from reliability.reconcile.formats.table import not_text

__all__ = ["FORMATS", "HEAD_BYTES", "identify", "read", "refuse_another_format"]

#: How much of a file the fingerprints look at.
HEAD_BYTES = 64 * 1024

#: Most particular first: the first fingerprint that fits names the file.
FORMATS: Mapping[str, StatementFormat] = {
    "stripe-payout-csv": stripe_payout_csv,
    "stripe-balance-csv": stripe_balance_csv,
    "stripe-api-json": stripe_api_json,
    "adyen-settlement-csv": adyen_settlement_csv,
    "gocardless-payout-items": gocardless_payout_items,
    "camt053": camt053,
    "mt940": mt940,
    "json-lines": json_lines,
    "mapped-csv": mapped_csv,
}


def identify(head: bytes) -> str | None:
    """Name the format a file that starts with ``head`` seems to be, or ``None``."""
    return next((name for name, form in FORMATS.items() if form.fingerprint(head)), None)


def refuse_another_format(name: str, head: bytes) -> None:
    """Raise :class:`StatementError` unless ``head`` looks like format ``name``.

    The error says what the file seems to be instead.
    """
    if name not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        raise StatementError(0, f"format {name!r} does not exist", f"choose one of {known}")
    if not head:
        raise StatementError(0, "the file is empty", "fetch the statement again")
    if not FORMATS[name].fingerprint(head):
        seems = not_text(head) or identify(head) or "of no known format"
        rule = f"this is not a {name} statement: it seems to be {seems}"
        raise StatementError(1, rule, "give the source's own statement, or change its format")


def read(name: str, stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Check the fingerprint of a seekable stream, then read it lazily as format ``name``."""
    start = stream.tell()
    refuse_another_format(name, stream.read(HEAD_BYTES))
    stream.seek(start)
    return FORMATS[name].read(stream, rules)
