"""Stripe: ``Stripe-Signature: t=…,v1=…`` over ``t.body``, HMAC-SHA256 in hex."""

from collections.abc import Mapping

from reliability.claim.body import pointer
from reliability.claim.signatures.clock import instant, unix_time
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import SIGNATURES_MAX, digest, match, unhex
from reliability.claim.signatures.verdicts import (
    MALFORMED,
    STALE,
    WRONG,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Signed,
    Unreadable,
    text_key,
)


def verify(message: Message) -> Signed | Refused:
    """Accept any fitting ``v1`` beside one ``t`` (docs.stripe.com/webhooks, verify manually)."""
    value = header(message.headers, "Stripe-Signature")
    if isinstance(value, Refused):
        return value
    time_text, signatures = _parse(value)
    signed_at = unix_time(time_text)
    if signed_at is None or not signatures:
        return Refused(MALFORMED)
    if not message.is_timely(signed_at):
        return Refused(STALE)
    content = time_text.encode() + b"." + message.body
    index = match(signatures, [(index, digest(key, content)) for index, key in message.keys])
    return Refused(WRONG) if index is None else Signed(index, signed_at)


def identities(
    body: bytes, _headers: Mapping[str, str], _options: Options
) -> list[Identity] | Unreadable:
    """Name the event by its ``id``, within the connected account where there is one."""
    event = document(body)
    if isinstance(event, Unreadable):
        return event
    account = pointer(event, "/account")
    key = identity_key(
        [pointer(event, "/id")] if account is None else [account, pointer(event, "/id")]
    )
    if isinstance(key, Unreadable):
        return key
    return [
        Identity(key, event_type(pointer(event, "/type")), instant(pointer(event, "/created")))
    ]


def _parse(value: str) -> tuple[str, list[bytes]]:
    """Split the header; no signatures when it is not exactly one time and well-formed MACs."""
    items = [item.partition("=") for item in value.split(",")]
    times = [text for name, _, text in items if name == "t"]
    signatures = [unhex(text) for name, _, text in items if name == "v1"]
    decoded = [signature for signature in signatures if signature is not None]
    if (
        len(times) != 1
        or len(decoded) < len(signatures)
        or len(decoded) > SIGNATURES_MAX
        or not all(equals for _, equals, _ in items)
    ):
        return "", []
    return times[0], decoded


def key(secret: str, options: Options) -> bytes | None:
    """Take the whole text, ``whsec_`` included, as the key; nothing behind it is no key."""
    return text_key(secret, options) if secret.removeprefix("whsec_").strip() else None


SCHEME = Scheme(name="stripe", version=1, verify=verify, identities=identities, key=key)
