"""Reads a body as JSON strictly, so that verifier, claim and handler all see the same values."""

import json
import re
from decimal import Decimal
from typing import NoReturn, TypeAlias

JsonValue: TypeAlias = (
    bool | int | Decimal | str | list["JsonValue"] | dict[str, "JsonValue"] | None
)

DEPTH_MAX = 100
NODES_MAX = 50_000
DIGITS_MAX = 1_000

# A string (closed or not, so that no quote is looked at twice) or one mark of structure.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_SPACE = re.compile(r"[ \t\n\r]*")


class Unparseable(ValueError):
    """A body that is not the JSON we accept; ``reason`` never repeats what the body says."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def load(raw: bytes) -> JsonValue:
    """Read one JSON object or array (RFC 8259) or raise ``Unparseable``.

    Integers stay exact and fractions become ``Decimal``. Refused: anything but UTF-8 (a byte
    order mark too), a name given twice, NaN and Infinity, lone surrogates, numbers past
    1 000 digits either side of the point, nesting past 100, more than 50 000 values. An
    escaped U+0000 is allowed: PostgreSQL's jsonb refuses it, the stored bytes do not.
    """
    text = _decode(raw)
    _bound(text)
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_refuse_constant,
        )
    except Unparseable:
        raise
    except (ValueError, RecursionError):
        raise Unparseable("not JSON") from None
    if not isinstance(value, dict | list):
        raise Unparseable("neither an object nor an array")
    _refuse_lone_surrogates(text, value)
    return value


def pointer(value: JsonValue, path: str) -> JsonValue:
    """Look up a JSON pointer (RFC 6901); ``None`` when it leads nowhere or to null."""
    if not path:
        return value
    head, *steps = path.split("/")
    if head:
        return None
    for step in steps:
        value = _step(value, step.replace("~1", "/").replace("~0", "~"))
    return value


def member(raw: bytes, name: str) -> bytes | None:
    """Cut the bytes of one member's value out of an object that ``load`` accepted."""
    text = raw.decode()
    at = _skip(text, 0)
    if text[at] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _value(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, at = _value(text, start)
        if key == name:
            return text[start:at].encode()
        at = _next(text, at)
    return None


def elements(raw: bytes) -> list[bytes]:
    """Cut an array that ``load`` accepted into its elements' bytes; nothing for a non-array."""
    text = raw.decode()
    at = _skip(text, 0)
    if text[at] != "[":
        return []
    found = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _value(text, at)
        found.append(text[at:end].encode())
        at = _next(text, end)
    return found


def _decode(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Unparseable("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise Unparseable("starts with a byte order mark")
    return text


def _bound(text: str) -> None:
    """Refuse depth and size before anything is built; small bodies pass on three counts."""
    opened = text.count("[") + text.count("{")
    if opened <= DEPTH_MAX and opened + text.count(",") < NODES_MAX:
        return
    depth, nodes = 0, 1
    for mark in _MARK.finditer(text):
        match mark[0]:
            case "[" | "{":
                depth, nodes = depth + 1, nodes + 1
            case "]" | "}":
                depth -= 1
            case ",":
                nodes += 1
        if depth > DEPTH_MAX:
            raise Unparseable("nested too deeply")
        if nodes > NODES_MAX:
            raise Unparseable("too many values")


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Unparseable("a name is given twice")
    return members


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise Unparseable("number out of bounds")
    return int(digits)


def _fraction(digits: str) -> Decimal:
    exponent = digits.lower().partition("e")[2]
    # Decimal itself raises on an exponent of twenty digits.
    if len(digits) > DIGITS_MAX or len(exponent) > len("+1000"):
        raise Unparseable("number out of bounds")
    number = Decimal(digits)
    if abs(number.adjusted()) > DIGITS_MAX:
        raise Unparseable("number out of bounds")
    return number


def _refuse_constant(_name: str) -> NoReturn:
    raise Unparseable("NaN or Infinity")


def _refuse_lone_surrogates(text: str, value: JsonValue) -> None:
    if not _SURROGATE.search(text):
        return
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise Unparseable("lone surrogate") from None


def _step(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    return None


_value = json.JSONDecoder().raw_decode


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _next(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
