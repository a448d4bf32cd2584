"""JSON documents as an API answers them: one a line, or one alone that fills the file."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import BinaryIO

from reliability.reconcile.formats.base import RowRefused, StatementError
from reliability.reconcile.formats.table import not_text, text_lines

#: A document that spans lines must be held whole.
DOCUMENT_CHARACTERS_MAX = 16 * 1024 * 1024
_TRIES_MAX = 20


def starts_object(head: bytes) -> bool:
    """Say whether the file is text that begins with a JSON object."""
    return not_text(head) is None and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def documents(stream: BinaryIO) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each document with the line it starts on; numbers with a fraction are Decimals.

    Raises :class:`StatementError` for what is not whole, valid JSON: pages cannot be missed.
    """
    held: list[str] = []
    size, start, tries = 0, 0, 0
    for number, text in enumerate(text_lines(stream, "utf-8"), 1):
        if not held and text.isspace():
            continue
        start = start if held else number
        held.append(text)
        size += len(text)
        if size > DOCUMENT_CHARACTERS_MAX or tries > _TRIES_MAX:
            raise _broken(start, "the document is no valid JSON of at most 16 Mi characters")
        if len(held) > 1 and not text.startswith("}"):
            continue  # An indented document ends with a brace at the margin.
        tries += 1
        if (found := _whole("".join(held))) is not None:
            yield start, found
            held, size, tries = [], 0, 0
    if held:
        raise _broken(start, "the document does not end, or is no valid JSON")


def _whole(text: str) -> Mapping[str, object] | None:
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _broken(line: int, rule: str) -> StatementError:
    return StatementError(line, rule, "fetch the statement again, one JSON answer a line")


def text_of(record: Mapping[str, object], name: str) -> str:
    """Take a text field; null or absent is empty, anything else refuses the row."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowRefused(f"field {name!r} is no text")
    return value


def record_of(value: object) -> Mapping[str, object]:
    """Take a nested object; anything else counts as empty."""
    return value if isinstance(value, Mapping) else {}


def raw_of(record: object) -> str:
    """Write a record out as one line again, for keeping."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str)
