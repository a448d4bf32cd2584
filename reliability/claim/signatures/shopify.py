"""Shopify: ``X-Shopify-Hmac-Sha256`` in base64 over the body; the event's id is not signed."""

from collections.abc import Mapping

from reliability.claim.signatures.clock import instant
from reliability.claim.signatures.github import unsigned_key
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type
from reliability.claim.signatures.mac import digest, match, unbase64
from reliability.claim.signatures.verdicts import (
    MALFORMED,
    WRONG,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Signed,
    Unreadable,
    never,
)


def verify(message: Message) -> Signed | Refused:
    """Accept the MAC under its old or new header name, both only if they agree.

    Source: shopify.dev, "Deliver webhooks through HTTPS". After a rotation Shopify signs with
    the old secret for up to an hour.
    """
    value = header(message.headers, *_names("Hmac-Sha256"))
    if isinstance(value, Refused):
        return value
    signature = unbase64(value)
    if signature is None:
        return Refused(MALFORMED)
    expected = [(index, digest(key, message.body)) for index, key in message.keys]
    index = match([signature], expected)
    return Refused(WRONG) if index is None else Signed(index)


def identities(
    body: bytes, headers: Mapping[str, str], _options: Options
) -> list[Identity] | Unreadable:
    """Name the event by ``X-Shopify-Event-Id``; the webhook id beside it names a delivery."""
    event = document(body)
    if isinstance(event, Unreadable):
        return event
    key = unsigned_key(headers, *_names("Event-Id"))
    if isinstance(key, Unreadable):
        return key
    topic = header(headers, *_names("Topic"))
    triggered = header(headers, *_names("Triggered-At"))
    return [
        Identity(
            key,
            "" if isinstance(topic, Refused) else event_type(topic),
            None if isinstance(triggered, Refused) else instant(triggered),
        )
    ]


def _names(name: str) -> tuple[str, str]:
    return f"X-Shopify-{name}", f"Shopify-{name}"


SCHEME = Scheme(
    name="shopify", version=1, verify=verify, identities=identities, identity_is_signed=never
)
