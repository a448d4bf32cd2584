"""A body as text to read: JSON laid out, everything hostile kept as text, secrets kept back. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reliability.console.redact import hidden_by_name, pieces

SHOWN_CHARACTERS_MAX = 64 * 1024
"""More of one body than this nobody reads on a page."""
DEPTH_MAX = 60
TURNS = re.compile("[\x00-\x08\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069\x7f-\x9f]")
"""Characters that turn or hide the text around them (Unicode TR 36); shown as escapes."""


@dataclass(frozen=True)
class Token:
    """A stretch of the text: its class in the stylesheet, or ``mark`` for what is kept back."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Shown:
    """A body ready for a page."""

    tokens: list[Token]
    size_bytes: int
    cut: bool
    redacted: bool


class _Number(str):
    """A JSON number exactly as written: 1.50 stays 1.50."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """A JSON object with its order and its repeated names."""


def shown(raw: bytes, *, redacted: bool) -> Shown:
    """Lay a body out. JSON that is too deep, and anything else, is shown as plain text."""
    text = raw.decode("utf-8", errors="backslashreplace")
    try:
        parsed = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_Number,
            object_pairs_hook=_Object,
        )  # fmt: skip
        tokens = list(_limited(_laid_out(parsed, redacted=redacted)))
    except (ValueError, RecursionError):
        tokens = list(_limited(_plain(text, redacted=redacted)))
    kept = sum(len(token.text) for token in tokens)
    return Shown(tokens, len(raw), cut=kept >= SHOWN_CHARACTERS_MAX, redacted=redacted)


def _limited(tokens: Iterator[Token]) -> Iterator[Token]:
    left = SHOWN_CHARACTERS_MAX
    for token in tokens:
        if left <= 0:
            return
        yield Token(token.text[:left], token.kind)
        left -= len(token.text)


def _laid_out(value: Any, *, redacted: bool, indent: str = "") -> Iterator[Token]:
    if len(indent) > DEPTH_MAX * 2:
        raise RecursionError
    match value:
        case _Object() if value:
            yield from _members(value, redacted=redacted, indent=indent)
        case _Object():
            yield Token("{}")
        case list() if value:
            yield from _items(value, redacted=redacted, indent=indent)
        case _Number():
            yield from _plain(value, redacted=redacted, kind="v")
        case str():
            yield from _plain(
                json.dumps(value, ensure_ascii=False), redacted=redacted, kind="s"
            )
        case _:
            yield Token(json.dumps(value), "v")


def _members(value: _Object, *, redacted: bool, indent: str) -> Iterator[Token]:
    yield Token("{\n")
    for n, (name, held) in enumerate(value, start=1):
        yield Token(f"{indent}  ")
        yield from _plain(json.dumps(name, ensure_ascii=False), redacted=redacted, kind="k")
        yield Token(": ")
        what = hidden_by_name(name) if redacted and held else ""
        if what:
            yield Token(f"redacted: {what}", "mark")
        else:
            yield from _laid_out(held, redacted=redacted, indent=f"{indent}  ")
        yield Token(",\n" if n < len(value) else "\n")
    yield Token(f"{indent}}}")


def _items(value: list[Any], *, redacted: bool, indent: str) -> Iterator[Token]:
    yield Token("[\n")
    for n, held in enumerate(value, start=1):
        yield Token(f"{indent}  ")
        yield from _laid_out(held, redacted=redacted, indent=f"{indent}  ")
        yield Token(",\n" if n < len(value) else "\n")
    yield Token(f"{indent}]")


def _plain(text: str, *, redacted: bool, kind: str = "") -> Iterator[Token]:
    if not redacted:
        yield Token(_escaped(text), kind)
        return
    for piece in pieces(text):
        if piece.hidden:
            yield Token(f"redacted: {piece.hidden}", "mark")
        else:
            yield Token(_escaped(piece.text), kind)


def _escaped(text: str) -> str:
    return TURNS.sub(lambda turn: f"\\u{ord(turn[0]):04x}", text)
