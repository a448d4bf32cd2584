"""Keys, digests and comparisons, on bytes and in constant time."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence

SIGNATURES_MAX = 32

_HEX = re.compile(r"(?:[0-9a-f]{2})+")


def digest(key: bytes, content: bytes, algorithm: str = "sha256") -> bytes:
    """Compute the HMAC (RFC 2104) of the content."""
    return hmac.new(key, content, getattr(hashlib, algorithm)).digest()


def match(signatures: Sequence[bytes], expected: Iterable[tuple[int, bytes]]) -> int | None:
    """Return the index of the first secret whose MAC was sent, after comparing every pair."""
    found: int | None = None
    for index, mac in expected:
        for signature in signatures:
            fits = hmac.compare_digest(mac, signature)
            found = index if fits and found is None else found
    return found


def unhex(text: str) -> bytes | None:
    """Decode lower-case hex, which is what every scheme here sends; ``None`` otherwise."""
    return bytes.fromhex(text) if _HEX.fullmatch(text) else None


def unbase64(text: str) -> bytes | None:
    """Decode padded standard base64 (RFC 4648 section 4); ``None`` when empty or foreign."""
    try:
        return base64.b64decode(text.encode("ascii"), validate=True) or None
    except ValueError:
        return None
