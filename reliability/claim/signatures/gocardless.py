"""GoCardless: ``Webhook-Signature`` in hex over a body that carries up to 250 events."""

from collections.abc import Mapping
from dataclasses import replace

from reliability.claim.body import elements, load, member, pointer
from reliability.claim.signatures.clock import instant
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import digest, match, unhex
from reliability.claim.signatures.verdicts import (
    MALFORMED,
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

EVENTS_MAX = 250


def verify(message: Message) -> Signed | Refused:
    """Accept the HMAC-SHA256 of the body (developer.gocardless.com, "Staying up-to-date")."""
    value = header(message.headers, "Webhook-Signature")
    if isinstance(value, Refused):
        return value
    signature = unhex(value)
    if signature is None:
        return Refused(MALFORMED)
    expected = [(index, digest(key, message.body)) for index, key in message.keys]
    index = match([signature], expected)
    return Refused(WRONG) if index is None else Signed(index)


def identities(body: bytes, _headers: Mapping[str, str], _options: Options) -> Found:
    """Name each event by its ``id``; its type is ``resource_type.action``."""
    batch = document(body)
    if isinstance(batch, Unreadable):
        return batch
    parts = elements(member(body, "events") or b"[]")
    if not 0 < len(parts) <= EVENTS_MAX:
        return Unreadable(f"not 1 to {EVENTS_MAX} events")
    return [_identity(part) for part in parts]


def _identity(part: bytes) -> Identity | Unreadable:
    event = load(part) if part.startswith(b"{") else None
    key = identity_key([pointer(event, "/id")])
    if isinstance(key, Unreadable):
        return replace(key, payload=part)
    kind = f"{pointer(event, '/resource_type')}.{pointer(event, '/action')}"
    return Identity(key, event_type(kind), instant(pointer(event, "/created_at")), part)


SCHEME = Scheme(name="gocardless", version=1, verify=verify, identities=identities)
