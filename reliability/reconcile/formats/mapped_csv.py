"""A delimited file whose columns, forms and control rows the source declares.

Options (all exact; see ``mapping``): ``columns`` {field: header}, ``references`` {name: header},
``header`` [names] for a file without one, ``preamble_rows_max``, ``encoding``, ``separator``,
``decimal``, ``thousands``, ``negative``, ``marks``, ``dates``, ``currency``, ``rows`` and more.
"""

from collections.abc import Iterator
from typing import BinaryIO

from reliability.reconcile.formats.base import Item, SourceRules, StatementError
from reliability.reconcile.formats.mapped_rows import MappedRows
from reliability.reconcile.formats.mapping import Mapped, mapped
from reliability.reconcile.formats.table import Row, not_text, rows


def fingerprint(head: bytes) -> bool:
    """Say whether the file can be a delimited text: not XML, JSON, SWIFT or binary."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\x01")
    return bool(text) and not_text(head) is None and text[:1] not in b"<{[:"


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield the lines, then what the file's control rows and running balance declare."""
    shape = mapped(rules.options)
    records = rows(stream, shape.dialect)
    table = MappedRows(shape, rules, _header(records, shape))
    for row in records:
        item = table.item(row)
        if item is not None:
            yield item
    yield table.declared.or_else(rules.declared)


def _header(records: Iterator[Row], shape: Mapped) -> Row:
    """Find the header: declared, or the first row (after a preamble) that has every column."""
    if shape.header is not None:
        return Row(0, "", list(shape.header))
    needed = set(shape.needed)
    row = None
    for _skipped, row in zip(range(shape.preamble_rows_max + 1), records, strict=False):
        if needed <= {name.strip() for name in row.values}:
            break
    if row is None:
        raise StatementError(1, "the file holds no row", "fetch the statement again")
    return row
