"""Rows of a delimited text file, decoded strictly and kept with their raw text and line."""

import codecs
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from reliability.reconcile.formats.base import ROW_BYTES_MAX, RowRefused, StatementError

_BOM = codecs.BOM_UTF8
_MAGIC = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


class Row(NamedTuple):
    """One record: the physical line it starts on, its text as it came, its fields."""

    position: int
    raw: str
    values: list[str]


@dataclass(frozen=True)
class Dialect:
    """How the file writes records; ``encoding`` must be a superset of ASCII."""

    encoding: str = "utf-8"
    separator: str = ","
    quote: str = '"'


def not_text(head: bytes) -> str | None:
    """Name what a file that is not text seems to be; ``None`` means it may be text."""
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    return "binary data" if b"\0" in head else None


def text_lines(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Yield decoded physical lines with their line ends, the BOM taken off the first.

    Raises :class:`StatementError` for an empty file, bytes that are no text, a byte the
    encoding does not have, and a line over 1 MiB.
    """
    decode = codecs.getdecoder(_ascii_superset(encoding))
    number = 0
    while raw := stream.readline(ROW_BYTES_MAX + 1):
        number += 1
        if number == 1:
            raw = _opened(raw)
        if len(raw) > ROW_BYTES_MAX or b"\0" in raw:
            rule = "a line is longer than 1 MiB or holds NUL bytes"
            raise StatementError(number, rule, "this is not a text statement; export it again")
        try:
            yield decode(raw)[0]
        except UnicodeDecodeError as error:
            rule = (
                f"byte 0x{raw[error.start]:02x} at column {error.start + 1} is not {encoding}"
            )
            raise StatementError(number, rule, "declare the file's encoding") from None
    if number == 0:
        raise StatementError(0, "the file is empty", "fetch the statement again")


def _opened(first: bytes) -> bytes:
    if kind := not_text(first[:4096]):
        raise StatementError(1, f"the file is {kind}", "give the statement itself, as text")
    return first.removeprefix(_BOM)


def _ascii_superset(encoding: str) -> str:
    try:
        plain = "\n;,0".encode(encoding) == b"\n;,0"
    except LookupError:
        plain = False
    if not plain:
        rule = f"encoding {encoding!r} is not one this reader takes"
        raise StatementError(0, rule, "declare utf-8, cp1252, iso-8859-15 or the like")
    return encoding


class _Recorder:
    """Hand lines to the csv module and remember what made up the record in hand."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.number = 0
        self.taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            self.taken.append(line)
            yield line


def rows(stream: BinaryIO, dialect: Dialect) -> Iterator[Row]:
    """Yield the records of a delimited file one by one; blank lines are passed over.

    Raises :class:`StatementError` where quoting is broken, as after a cut.
    """
    recorder = _Recorder(text_lines(stream, dialect.encoding))
    reader = csv.reader(
        recorder, delimiter=dialect.separator, quotechar=dialect.quote, strict=True
    )
    taken = recorder.taken
    try:
        for values in reader:
            start = recorder.number - len(taken) + 1
            raw = taken[0] if len(taken) == 1 else "".join(taken)
            taken.clear()
            if values:
                yield Row(start, raw.rstrip("\r\n"), values)
    except csv.Error as error:
        rule = f"quoting is broken: {error}"
        raise StatementError(
            recorder.number, rule, "the file may be cut; fetch it again"
        ) from None


def header_row(records: Iterator[Row]) -> Row:
    """Take the first record; a file of blank lines only is refused."""
    row = next(records, None)
    if row is None:
        raise StatementError(1, "the file holds no row", "fetch the statement again")
    return row


def whole(row: Row, width: int) -> list[str]:
    """Give the row's fields if it has exactly as many as the header.

    A short row is cut, a long one holds a separator nobody quoted: both are refused.
    """
    if len(row.values) != width:
        raise RowRefused(f"the row has {len(row.values)} of {width} columns")
    return row.values


def header_index(row: Row, names: Sequence[str]) -> dict[str, int]:
    """Map each header name to its column; a needed name that is missing or double is refused."""
    header = [name.strip() for name in row.values]
    missing = [name for name in names if name not in header]
    double = [name for name in names if header.count(name) > 1]
    if missing or double:
        what = f"has no column {missing[0]!r}" if missing else f"has {double[0]!r} twice"
        rule = f"the header {what}"
        raise StatementError(row.position, rule, "choose the format and columns of this file")
    return {name: column for column, name in enumerate(header) if name}


def first_header(head: bytes) -> set[str]:
    """Read the names of a comma-separated file's first line, for fingerprints."""
    if not_text(head):
        return set()
    line = head.removeprefix(_BOM).splitlines()[:1]
    text = line[0].decode("utf-8", "replace") if line else ""
    try:
        return {name.strip() for name in next(csv.reader([text]), [])}
    except csv.Error:
        return set()
