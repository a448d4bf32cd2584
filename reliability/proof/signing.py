"""Sign deliveries as their senders would, sharing no code with the verifiers."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime

from reliability.proof.cast import StoryDelivery


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


def stripe(body: bytes, *, secret: str, seconds: int) -> Mapping[str, str]:
    """Sign as https://docs.stripe.com/webhooks/signature says; `seconds` since the epoch."""
    mac = _mac(secret.encode(), b"%d.%b" % (seconds, body)).hex()
    return {"Stripe-Signature": f"t={seconds},v1={mac}"}


def standard_webhooks(
    message_id: str, body: bytes, secret: str, *, seconds: int
) -> Mapping[str, str]:
    """Sign as the Standard Webhooks specification says, section "Signature scheme"."""
    key = b64decode(secret.removeprefix("whsec_"))
    mac = _mac(key, b"%b.%d.%b" % (message_id.encode(), seconds, body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": "v1," + b64encode(mac).decode(),
    }


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()
