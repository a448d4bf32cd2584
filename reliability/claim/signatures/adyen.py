"""Adyen's standard webhooks: every item in the body carries a MAC over eight of its fields."""

from collections.abc import Mapping
from dataclasses import replace

from reliability.claim.body import JsonValue, elements, load, member, pointer
from reliability.claim.signatures.clock import instant
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import digest, match, unbase64, unhex
from reliability.claim.signatures.verdicts import (
    MALFORMED,
    MISSING,
    WRONG,
    Found,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Signed,
    Unreadable,
)

# docs.adyen.com/development-resources/webhooks/verify-hmac-signatures: joined by colons,
# nothing escaped. Reason, payment method, event date and all else are not signed.
SIGNED_FIELDS = (
    "/pspReference",
    "/originalReference",
    "/merchantAccountCode",
    "/merchantReference",
    "/amount/value",
    "/amount/currency",
    "/eventCode",
    "/success",
)


def verify(message: Message) -> Signed | Refused:
    """Accept a body only if every item verifies; the oldest secret needed is the one named.

    One genuine item in front must not carry a forged one through.
    """
    items = [load(item) for item in _items(message.body)]
    if not items:
        return Refused(MALFORMED)
    found = [_verify_item(item, message) for item in items]
    refused = [verdict for verdict in found if isinstance(verdict, Refused)]
    if refused:
        return refused[0]
    return Signed(max(verdict for verdict in found if isinstance(verdict, int)))


def identities(body: bytes, _headers: Mapping[str, str], _options: Options) -> Found:
    """Name each item by reference, code and outcome: one payment has many notifications."""
    batch = document(body)
    if isinstance(batch, Unreadable):
        return batch
    items = _items(body)
    if not items:
        return Unreadable("no notification items")
    return [_identity(item) for item in items]


def key(secret: str, _options: Options) -> bytes | None:
    """Decode the hex key of the Customer Area; ``None`` when it is not hex."""
    return unhex(secret.lower())


def _items(body: bytes) -> list[bytes]:
    """Cut out the items' bytes; none if the body or any envelope has another shape."""
    if isinstance(document(body), Unreadable):
        return []
    envelopes = elements(member(body, "notificationItems") or b"[]")
    found = [member(envelope, "NotificationRequestItem") for envelope in envelopes]
    items = [item for item in found if item is not None and item.startswith(b"{")]
    return items if len(items) == len(envelopes) else []


def _verify_item(item: JsonValue, message: Message) -> int | Refused:
    sent = pointer(item, "/additionalData/hmacSignature")
    if not isinstance(sent, str):
        return Refused(MISSING)
    signature, content = unbase64(sent), _content(item)
    if signature is None or content is None:
        return Refused(MALFORMED)
    index = match([signature], [(index, digest(key, content)) for index, key in message.keys])
    return Refused(WRONG) if index is None else index


def _content(item: JsonValue) -> bytes | None:
    """Join the signed fields; ``None`` for a value of another kind.

    Only the merchant's reference may hold a colon: with a second such field the same MAC
    would fit two different splits.
    """
    texts = [_field(path, pointer(item, path)) for path in SIGNED_FIELDS]
    known = [text for text in texts if text is not None]
    return ":".join(known).encode() if len(known) == len(texts) else None


def _field(path: str, value: JsonValue) -> str | None:
    if value is None:
        return ""
    if path == "/amount/value":
        return str(value) if type(value) is int else None
    if not isinstance(value, str) or (":" in value and path != "/merchantReference"):
        return None
    return value


def _identity(raw: bytes) -> Identity | Unreadable:
    item = load(raw)
    code = pointer(item, "/eventCode")
    key = identity_key([pointer(item, "/pspReference"), code, pointer(item, "/success")])
    if isinstance(key, Unreadable):
        return replace(key, payload=raw)
    return Identity(key, event_type(code), instant(pointer(item, "/eventDate")), raw)


SCHEME = Scheme(name="adyen", version=1, verify=verify, identities=identities, key=key)
