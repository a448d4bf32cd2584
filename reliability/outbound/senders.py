"""Signs deliveries as each provider does, by code that shares nothing with the verifiers."""

import binascii
import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reliability.outbound.signing import signed_headers

TEST_TYPE = "reliability.test"
"""The type of an event that asks for nothing: it shows that events come through."""
UNSIGNABLE = {
    "paypal": "PayPal signs with a key of its own: use the simulator in PayPal’s dashboard",
}


class CannotSign(ValueError):
    """Only the provider can sign for this source; the text says what to do instead."""


@dataclass(frozen=True)
class Delivery:
    """A signed request: send the body unchanged. ``key`` is the event key it will have."""

    key: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Asked:
    event_id: str
    secret: str
    options: Mapping[str, Any]
    now: datetime

    @property
    def seconds(self) -> int:
        return int(self.now.timestamp())


def sample_delivery(
    scheme: str, event_id: str, *, secret: str, options: Mapping[str, Any], now: datetime
) -> Delivery:
    """Return a signed event of ``TEST_TYPE`` as the scheme's sender would send it at ``now``.

    Raises CannotSign where only the provider holds the key.
    """
    if scheme not in _SENDERS or secret.startswith("whpk_"):
        why = "this source only knows the sender’s public key"
        raise CannotSign(UNSIGNABLE.get(scheme, why))
    made = _SENDERS[scheme](_Asked(event_id, secret, options, now))
    return Delivery(made.key, made.body, {"Content-Type": "application/json", **made.headers})


def stripe(body: bytes, *, secret: str, seconds: int) -> dict[str, str]:
    """Sign as https://docs.stripe.com/webhooks/signature says; ``seconds`` since the epoch."""
    mac = _mac(secret.encode(), b"%d.%b" % (seconds, body)).hex()
    return {"Stripe-Signature": f"t={seconds},v1={mac}"}


def _stripe(asked: _Asked) -> Delivery:
    event = {"id": asked.event_id, "object": "event", "type": TEST_TYPE}
    body = _json(event | {"created": asked.seconds, "data": {"object": {}}})
    signature = stripe(body, secret=asked.secret, seconds=asked.seconds)
    return Delivery(asked.event_id, body, signature)


def _standard_webhooks(asked: _Asked) -> Delivery:
    body = _json({"type": TEST_TYPE, "timestamp": asked.now.isoformat(), "data": {}})
    text = asked.secret.removeprefix("whsec_")
    secret = f"whsec_{text}{'=' * (-len(text) % 4)}"
    headers = signed_headers(
        secret, message_id=asked.event_id, seconds=asked.seconds, body=body
    )
    return Delivery(asked.event_id, body, headers)


def _github(asked: _Asked) -> Delivery:
    body = _json({"zen": "This event asks for nothing.", "test": asked.event_id})
    headers = {
        "X-Hub-Signature-256": f"sha256={_mac(asked.secret.encode(), body).hex()}",
        "X-GitHub-Event": TEST_TYPE,
        "X-GitHub-Delivery": asked.event_id,
    }
    return Delivery(asked.event_id, body, headers)


def _shopify(asked: _Asked) -> Delivery:
    body = _json({"test": asked.event_id})
    headers = {
        "X-Shopify-Hmac-Sha256": b64encode(_mac(asked.secret.encode(), body)).decode(),
        "X-Shopify-Topic": TEST_TYPE,
        "X-Shopify-Event-Id": asked.event_id,
    }
    return Delivery(asked.event_id, body, headers)


def _gocardless(asked: _Asked) -> Delivery:
    resource, _, action = TEST_TYPE.partition(".")
    event = {"id": asked.event_id, "resource_type": resource, "action": action, "links": {}}
    body = _json({"events": [event | {"created_at": asked.now.isoformat()}]})
    headers = {"Webhook-Signature": _mac(asked.secret.encode(), body).hex()}
    return Delivery(asked.event_id, body, headers)


def _adyen(asked: _Asked) -> Delivery:
    """Sign the item: reference, original, account, merchant's, value, currency, code, success."""
    signed = f"{asked.event_id}::reliability:{asked.event_id}:0:EUR:{TEST_TYPE}:true".encode()
    mac = b64encode(_mac(bytes.fromhex(asked.secret), signed)).decode()
    item = {
        "pspReference": asked.event_id,
        "merchantAccountCode": "reliability",
        "merchantReference": asked.event_id,
        "amount": {"value": 0, "currency": "EUR"},
        "eventCode": TEST_TYPE,
        "success": "true",
        "eventDate": asked.now.isoformat(timespec="seconds"),
        "additionalData": {"hmacSignature": mac},
    }
    key = json.dumps([asked.event_id, TEST_TYPE, "true"], separators=(",", ":"))
    wrapped = [{"NotificationRequestItem": item}]
    return Delivery(key, _json({"live": "false", "notificationItems": wrapped}))


def _generic_hmac(asked: _Asked) -> Delivery:
    """Put id, type and time where the source's options look for them, and sign as they say."""
    options, content, headers = asked.options, dict[str, Any](), dict[str, str]()
    told = {"id": asked.event_id, "type": TEST_TYPE, "time": asked.now.isoformat()}
    for what, value in told.items():
        if pointer := options.get(f"{what}_pointer"):
            _put(content, str(pointer), value)
        elif name := options.get(f"{what}_header"):
            headers[str(name)] = value
    body = signed = _json(content)
    if name := options.get("timestamp_header"):
        headers[str(name)] = str(asked.seconds)
        separator = str(options.get("timestamp_separator", "."))
        signed = f"{asked.seconds}{separator}".encode() + body
    mac = hmac.new(_generic_key(asked), signed, str(options.get("algorithm", "sha256")))
    in_base64 = options.get("encoding") == "base64"
    text = b64encode(mac.digest()).decode() if in_base64 else mac.hexdigest()
    headers[str(options["header"])] = f"{options.get('prefix', '')}{text}"
    return Delivery(asked.event_id, body, headers)


def _generic_key(asked: _Asked) -> bytes:
    match asked.options.get("secret_encoding"):
        case "hex":
            return binascii.unhexlify(asked.secret)
        case "base64":
            return b64decode(asked.secret)
        case _:
            return asked.secret.encode()


def _put(content: dict[str, Any], pointer: str, value: str) -> None:
    """Set a value at a JSON pointer (RFC 6901), making the objects on its way."""
    *way, last = (
        part.replace("~1", "/").replace("~0", "~") for part in pointer.lstrip("/").split("/")
    )
    for part in way:
        content = content.setdefault(part, {})
    content[last] = value


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


_SENDERS: Mapping[str, Callable[[_Asked], Delivery]] = {
    "stripe": _stripe,
    "standard-webhooks": _standard_webhooks,
    "github": _github,
    "shopify": _shopify,
    "gocardless": _gocardless,
    "adyen": _adyen,
    "generic-hmac": _generic_hmac,
}
