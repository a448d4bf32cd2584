"""The key rule: what may name an event, and how several parts become one name."""

import json
import unicodedata
from collections.abc import Sequence

from reliability.claim.body import JsonValue, Unparseable, load
from reliability.claim.signatures.verdicts import Unreadable

KEY_BYTES_MAX = 255


def key_error(key: str) -> str | None:
    """Say what is wrong with a key, or ``None``: 1-255 bytes of UTF-8, no control characters.

    Nothing else is looked at: spaces, case and Unicode forms are the producer's own.
    """
    if not key:
        return "empty"
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "not UTF-8"
    if size > KEY_BYTES_MAX:
        return "longer than 255 bytes"
    if any(unicodedata.category(character) == "Cc" for character in key):
        return "holds a control character"
    return None


def identity_key(parts: Sequence[object]) -> str | Unreadable:
    """Make an event key of its parts: one part as it is, several as a compact JSON array.

    A part is text or a whole number (written in digits).
    """
    texts = [_text(part) for part in parts]
    if not texts or None in texts:
        return Unreadable("no event id")
    key = texts[0] if len(texts) == 1 else _array(texts)
    # Parts are judged by themselves too: the array would hide a control character in \u0001.
    for candidate in [*texts, key]:
        if error := key_error(candidate or ""):
            return Unreadable(f"event id {error}")
    return key or Unreadable("no event id")


def event_type(value: object) -> str:
    """Take a type as sent if it can be stored and shown on one line; else the empty text."""
    return value if isinstance(value, str) and key_error(value) is None else ""


def document(body: bytes) -> JsonValue | Unreadable:
    """Read a body strictly; the reason when it cannot be read."""
    try:
        return load(body)
    except Unparseable as unparseable:
        return Unreadable(unparseable.reason, "unparseable")


def _text(part: object) -> str | None:
    if isinstance(part, int) and not isinstance(part, bool):
        return str(part)
    return part if isinstance(part, str) else None


def _array(texts: Sequence[str | None]) -> str:
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
