"""Sign deliveries as their senders would, sharing no code with the verifiers."""

import hashlib
import hmac
from datetime import datetime

from reliability.outbound import signing as outbound_signing
from reliability.outbound.senders import stripe
from reliability.proof.cast import StoryDelivery

__all__ = ["signed_headers", "standard_webhooks", "stripe"]


def signed_headers(delivery: StoryDelivery, *, secret: str, now: datetime) -> dict[str, str]:
    """Return all headers to send at `now`, an aware datetime; the body must go out unchanged.

    Secrets are as each scheme prints them: `whsec_…` is text for Stripe and base64 for Standard
    Webhooks. ValueError for a scheme the story has no sender for.
    """
    event, seconds = delivery.event, int(now.timestamp())
    match event.scheme:
        case "stripe":
            signature = stripe(delivery.body, secret=secret, seconds=seconds)
        case "standard-webhooks":
            signature = standard_webhooks(event.key, delivery.body, secret, seconds=seconds)
        case "generic-hmac":
            signature = {"X-Signature": _mac(secret.encode(), delivery.body).hex()}
        case scheme:
            raise ValueError(f"the story has no sender for {scheme}")
    return {**event.headers, **signature}


def standard_webhooks(
    message_id: str, body: bytes, secret: str, *, seconds: int
) -> dict[str, str]:
    """Sign as the Standard Webhooks specification says, section "Signature scheme"."""
    return outbound_signing.signed_headers(
        secret, message_id=message_id, seconds=seconds, body=body
    )


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()
