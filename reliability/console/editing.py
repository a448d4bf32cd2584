"""A body as a form: each value a field, and which of them may be changed. Structure stays."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reliability.claim.operations import OperationRule, read_rules
from reliability.claim.presets import PRESETS
from reliability.console.filters import NotUnderstood
from reliability.console.redact import hidden_by_name, pieces
from reliability.models import DeadLetter, ProcessedKey

FIELDS_MAX = 300
"""Bodies with more values cannot be edited in a form."""
MONEY = re.compile("amount|currency", re.IGNORECASE)
"""Names that begin like this hold money, mapped or not."""
LOCKED, SENSITIVE, FREE = "locked", "sensitive", "free"


class Number(str):
    """A JSON number exactly as written: 1.50 stays 1.50."""

    __slots__ = ()


@dataclass(frozen=True)
class Field:
    """One value of a body. ``text`` is what the form shows; a sensitive one shows what it is."""

    pointer: str
    value: Any
    kind: str
    hidden: str = ""

    @property
    def text(self) -> str:
        return as_text(self.value)

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str) and not isinstance(self.value, Number)


class CannotEdit(ValueError):
    """This body is no form: not JSON, too many values, or gone."""


def parse(raw: bytes) -> Any:
    """Read a body for editing. Raises CannotEdit."""
    try:
        return json.loads(raw, parse_int=Number, parse_float=Number, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise CannotEdit("The body is not JSON that can be written back.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name is given twice")
    return dict(pairs)


def fields(letter: DeadLetter, raw: bytes, *, revealed: bool) -> list[Field]:
    """Return the values of a body, each locked, sensitive or free. Raises CannotEdit.

    Locked is what says which event and which operation this is: the key, the type, the reference,
    amounts and currencies. Sensitive values can be changed only while they are revealed.
    """
    found = list(leaves(parse(raw)))
    if len(found) > FIELDS_MAX:
        raise CannotEdit(f"The body has more than {FIELDS_MAX} values.")
    fixed = _fixed(letter)
    return [_field(pointer, value, fixed, revealed=revealed) for pointer, value in found]


def _field(pointer: str, value: Any, fixed: "_Fixed", *, revealed: bool) -> Field:
    name = pointer.rpartition("/")[2]
    if fixed.locks(pointer, value) or MONEY.match(name):
        return Field(pointer, value, LOCKED)
    hidden = hidden_by_name(name) or next(
        (p.hidden for p in pieces(str(value)) if p.hidden), ""
    )
    if hidden and value not in (None, ""):
        return Field(pointer, value, SENSITIVE, "" if revealed else hidden)
    return Field(pointer, value, FREE)


@dataclass(frozen=True)
class _Fixed:
    pointers: frozenset[str]
    values: frozenset[str]

    def locks(self, pointer: str, value: Any) -> bool:
        return pointer in self.pointers or (isinstance(value, str) and value in self.values)


def _fixed(letter: DeadLetter) -> _Fixed:
    key: ProcessedKey = letter.job.key
    kind = key.kind.removeprefix(f"{letter.source.scheme}.")
    told = (key.key, key.operation_reference, kind, key.downstream_key)
    paths = {
        path
        for rule in _rules(letter)
        for path in (*rule.reference, *rule.amount, *rule.currency, *rule.occurred_at)
    }
    return _Fixed(frozenset(paths), frozenset(text for text in told if text))


def _rules(letter: DeadLetter) -> Iterator[OperationRule]:
    source = letter.source
    preset = PRESETS.get(source.preset) or PRESETS.get(source.scheme)
    yield from read_rules(source.operation_rules)
    yield from preset.operations if preset else ()


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each scalar, and each empty object or array, with its JSON pointer (RFC 6901)."""
    if isinstance(value, dict) and value:
        for name, held in value.items():
            yield from leaves(held, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for n, held in enumerate(value):
            yield from leaves(held, f"{pointer}/{n}")
    else:
        yield pointer, value


def edited(raw: bytes, shown: list[Field], said: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """Apply what the form says; return the new body and the pointers that changed.

    A field that is locked, or sensitive and not revealed, keeps its value whatever was sent for
    it: sending another is NotUnderstood.
    """
    new: dict[str, Any] = {}
    for field in shown:
        text = said.get(f"f{field.pointer}")
        if text is None or text.replace("\r\n", "\n") == field.text.replace("\r\n", "\n"):
            continue
        if field.kind == LOCKED or field.hidden:
            raise NotUnderstood(f"“{field.pointer}” cannot be changed here.")
        new[field.pointer] = _read(field, text)
    return written(_with(parse(raw), new)).encode(), sorted(new)


def _read(field: Field, text: str) -> Any:
    if field.is_text:
        return text
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number)
    except ValueError:
        raise NotUnderstood(f"“{field.pointer}” is not JSON: {text[:40]!r}.") from None
    if isinstance(value, dict | list):
        raise NotUnderstood(f"“{field.pointer}” takes one value, not a structure.")
    return value


def _with(value: Any, new: Mapping[str, Any], pointer: str = "") -> Any:
    match value:
        case dict() if value:
            return {
                name: _with(
                    held, new, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
                )
                for name, held in value.items()
            }
        case list() if value:
            return [_with(held, new, f"{pointer}/{n}") for n, held in enumerate(value)]
        case _:
            return new.get(pointer, value)


def written(value: Any) -> str:
    """Write JSON with numbers as they were read."""
    match value:
        case Number():
            return str(value)
        case dict():
            inside = (f"{json.dumps(name)}: {written(held)}" for name, held in value.items())
            return "{" + ", ".join(inside) + "}"
        case list():
            return "[" + ", ".join(written(held) for held in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    """Write one value as the form shows it: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return str(value)
    return json.dumps(value)
