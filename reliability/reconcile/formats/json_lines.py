"""One JSON object a line, its fields found by dotted paths the source declares.

Options as for ``mapped_csv``, with paths such as ``data.amount`` for header names. ``units``:
``minor`` takes whole numbers, ``major`` takes decimals (numbers are read exactly, never as
binary floats). Row rules read control objects, such as {"control": "count", "value": 3}.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import BinaryIO

from reliability.reconcile.formats.base import Item, Quarantined, RowRefused, SourceRules
from reliability.reconcile.formats.mapped_rows import MappedRows
from reliability.reconcile.formats.mapping import mapped
from reliability.reconcile.formats.table import Row, not_text, text_lines


def fingerprint(head: bytes) -> bool:
    """Say whether the first line is one JSON object of its own."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].strip()
    return not_text(head) is None and first.startswith(b"{") and first.endswith(b"}")


def read(stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
    """Yield one line per object; an object that cannot be read whole is quarantined."""
    shape = mapped(rules.options)
    paths = shape.needed
    table = MappedRows(shape, rules, Row(0, "", paths))
    for number, text in enumerate(text_lines(stream, shape.dialect.encoding), 1):
        raw = text.rstrip("\r\n")
        if not raw or raw.isspace():
            continue
        try:
            values = _values(raw, paths)
        except RowRefused as error:
            yield Quarantined(number, raw, str(error))
            continue
        item = table.item(Row(number, raw, values))
        if item is not None:
            yield item
    yield table.declared.or_else(rules.declared)


def _values(raw: str, paths: list[str]) -> list[str]:
    try:
        found = json.loads(raw, parse_float=Decimal, object_pairs_hook=_unrepeated)
    except ValueError as error:
        raise RowRefused(f"not a JSON object: {error}") from None
    except RecursionError:
        raise RowRefused("not a JSON object: nested too deep") from None
    if not isinstance(found, dict):
        raise RowRefused("not a JSON object")
    return [_text(found, path) for path in paths]


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _text(found: Mapping[str, object], path: str) -> str:
    value: object = found
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case _:
            raise RowRefused(f"field {path!r} is no text or number")
