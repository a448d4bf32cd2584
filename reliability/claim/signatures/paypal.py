"""PayPal: RSA over ``id|time|webhook id|CRC32 of the body``, by a certificate of PayPal's.

The body is bound by a checksum only, which anybody can match. A pass here is a filter: the
event has to be posted back to PayPal or fetched by its id before a handler runs.
"""

import zlib
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from reliability.claim.body import pointer
from reliability.claim.signatures.clock import instant
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import unbase64
from reliability.claim.signatures.paypal_certificate import is_signed, trusted_key
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
)

# Which certificate a host may hand out: a sandbox certificate is no good for live money.
CERTIFICATE_NAMES = {
    "api.paypal.com": "messageverificationcerts.paypal.com",
    "api-m.paypal.com": "messageverificationcerts.paypal.com",
    "api.sandbox.paypal.com": "messageverificationcerts.sandbox.paypal.com",
    "api-m.sandbox.paypal.com": "messageverificationcerts.sandbox.paypal.com",
}
CERTIFICATE_PATH = "/v1/notifications/certs/"
ALGORITHM = "SHA256withRSA"
TOLERANCE = timedelta(days=3, hours=1)
UNTRUSTED = "certificate not trusted"

_HEADERS = (
    "Transmission-Id",
    "Transmission-Time",
    "Transmission-Sig",
    "Auth-Algo",
    "Cert-Url",
)


def verify(message: Message) -> Signed | Refused:
    """Accept a signature by a PayPal certificate valid now, over the source's webhook id.

    The webhook id stands where other schemes have a secret. Options: ``certificates`` maps
    the certificate URL to the PEM bytes fetched from it, intermediates included; ``roots``
    holds the trusted roots as PEM. Without them nothing is accepted.
    """
    sent = [header(message.headers, f"Paypal-{name}") for name in _HEADERS]
    texts = [value for value in sent if isinstance(value, str)]
    if len(texts) < len(sent):
        return next(value for value in sent if isinstance(value, Refused))
    message_id, time_text, signature_text, algorithm, url = texts
    signed_at, signature = instant(time_text), unbase64(signature_text)
    if signed_at is None or signature is None or algorithm != ALGORITHM:
        return Refused(MALFORMED)
    if not message.is_timely(signed_at):
        return Refused(STALE)
    return _judge(message, f"{message_id}|{time_text}", Signed(0, signed_at), (url, signature))


def certificate_url(headers: Mapping[str, str]) -> str | None:
    """Return the certificate URL to fetch, if it is one of PayPal's own; else ``None``.

    Fetch it over HTTPS without redirects, at most 16 KB, and keep it.
    """
    url = header(headers, "Paypal-Cert-Url")
    return url if isinstance(url, str) and _certificate_name(url) else None


def identities(
    body: bytes, _headers: Mapping[str, str], _options: Options
) -> list[Identity] | Unreadable:
    """Name the event by the body's ``id``, which a resend keeps."""
    event = document(body)
    if isinstance(event, Unreadable):
        return event
    key = identity_key([pointer(event, "/id")])
    if isinstance(key, Unreadable):
        return key
    kind, created = pointer(event, "/event_type"), pointer(event, "/create_time")
    return [Identity(key, event_type(kind), instant(created))]


def option_error(options: Options) -> str | None:
    """Say what is wrong with the trust material; none at all is no mistake yet."""
    certificates, roots = options.get("certificates", {}), options.get("roots", b"")
    if not isinstance(roots, bytes):
        return "roots must be PEM bytes"
    if not isinstance(certificates, Mapping) or not all(
        isinstance(pem, bytes) for pem in certificates.values()
    ):
        return "certificates must map URLs to PEM bytes"
    return None


def _judge(
    message: Message, prefix: str, signed: Signed, evidence: tuple[str, bytes]
) -> Signed | Refused:
    url, signature = evidence
    name = _certificate_name(url)
    public = trusted_key(message.options, url, name=name, now=message.now) if name else None
    if public is None:
        return Refused(UNTRUSTED)
    checksum = zlib.crc32(message.body)
    fitting = [
        index
        for index, webhook_id in message.keys
        if is_signed(public, signature, _content(prefix, webhook_id, checksum))
    ]
    return Signed(min(fitting), signed.signed_at) if fitting else Refused(WRONG)


def _content(prefix: str, webhook_id: bytes, checksum: int) -> bytes:
    # A header can hold what has no UTF-8; it then signs for nothing.
    return b"|".join([prefix.encode("utf-8", "replace"), webhook_id, str(checksum).encode()])


def _certificate_name(url: str) -> str | None:
    """Return the name a certificate from this URL must bear; ``None`` for any other place."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    # The host as written, port and user included: what differs from the list is refused.
    name = CERTIFICATE_NAMES.get(parts.netloc)
    plain = parts.scheme == "https" and not parts.query and not parts.fragment
    identifier = parts.path.removeprefix(CERTIFICATE_PATH)
    genuine = parts.path.startswith(CERTIFICATE_PATH) and identifier.replace("-", "").isalnum()
    return name if plain and genuine and url.isascii() else None


SCHEME = Scheme(
    name="paypal",
    version=1,
    verify=verify,
    identities=identities,
    option_error=option_error,
    body_is_bound=False,
    needs_certificates=True,
    tolerance=TOLERANCE,
)
