"""Standard Webhooks (and Svix, its origin): ``id.timestamp.body``, HMAC-SHA256 or Ed25519."""

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from reliability.claim.body import pointer
from reliability.claim.signatures.clock import instant, unix_time
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import SIGNATURES_MAX, digest, match, unbase64
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

PUBLIC_KEY_BYTES = 32

_ID = ("webhook-id", "svix-id")
_TIMESTAMP = ("webhook-timestamp", "svix-timestamp")
_SIGNATURE = ("webhook-signature", "svix-signature")


def verify(message: Message) -> Signed | Refused:
    """Accept a fitting ``v1`` (secret) or ``v1a`` (public key); other versions are passed over.

    A secret never checks a ``v1a`` and a public key never serves as a secret: whoever can
    read a public key could sign with it.
    """
    found = [header(message.headers, *names) for names in (_ID, _TIMESTAMP, _SIGNATURE)]
    sent = [value for value in found if isinstance(value, str)]
    if len(sent) < len(found):
        return next(value for value in found if isinstance(value, Refused))
    message_id, time_text, signatures = sent
    signed_at = unix_time(time_text)
    if signed_at is None or signatures.count(" ") >= SIGNATURES_MAX:
        return Refused(MALFORMED)
    if not message.is_timely(signed_at):
        return Refused(STALE)
    content = b".".join(
        [message_id.encode("utf-8", "replace"), time_text.encode(), message.body]
    )
    index = _match(message, content, signatures)
    return Refused(WRONG) if index is None else Signed(index, signed_at)


def identities(
    body: bytes, headers: Mapping[str, str], _options: Options
) -> list[Identity] | Unreadable:
    """Name the event by its signed ``webhook-id``; type and time come from the body."""
    sent = header(headers, *_ID)
    key = identity_key([None if isinstance(sent, Refused) else sent])
    event = document(body)
    if isinstance(event, Unreadable):
        return event
    if isinstance(key, Unreadable):
        return key
    occurred_at = instant(pointer(event, "/timestamp"))
    return [Identity(key, event_type(pointer(event, "/type")), occurred_at)]


def key(secret: str, _options: Options) -> bytes | None:
    """Check a ``whsec_…`` secret, a ``whpk_…`` public key or bare base64; ``None`` when unusable.

    The text itself is kept, since its prefix decides what the key may check.
    """
    shared, public = _shared(secret), _public(secret)
    return secret.encode() if shared is not None or public is not None else None


def _match(message: Message, content: bytes, signatures: str) -> int | None:
    """Compare every secret with every signature of its own kind; the first that fits."""
    texts = [(index, key.decode()) for index, key in message.keys]
    shared = [(index, secret) for index, text in texts if (secret := _shared(text))]
    public = [(index, secret) for index, text in texts if (secret := _public(text))]
    by_mac = match(
        _decoded(signatures, "v1"), [(index, digest(key, content)) for index, key in shared]
    )
    signed = _decoded(signatures, "v1a")
    by_key = [index for index, key in public if _any_signed(key, signed, content)]
    fitting = [index for index in (by_mac, *by_key) if index is not None]
    return min(fitting, default=None)


def _decoded(signatures: str, version: str) -> list[bytes]:
    """Decode the signatures of one version; entries that are no signature are passed over."""
    entries = [entry.partition(",") for entry in signatures.split(" ")]
    found = [unbase64(text) for name, _, text in entries if name == version]
    return [signature for signature in found if signature is not None]


def _any_signed(key: bytes, signatures: list[bytes], content: bytes) -> bool:
    public = Ed25519PublicKey.from_public_bytes(key)
    return sum(_is_signed(public, signature, content) for signature in signatures) > 0


def _is_signed(public: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _shared(secret: str) -> bytes | None:
    if secret.startswith(("whpk_", "whsk_")):
        return None
    text = secret.removeprefix("whsec_")
    return unbase64(text + "=" * (-len(text) % 4))


def _public(secret: str) -> bytes | None:
    key = unbase64(secret.removeprefix("whpk_")) if secret.startswith("whpk_") else None
    return key if key is not None and len(key) == PUBLIC_KEY_BYTES else None


SCHEME = Scheme(
    name="standard-webhooks", version=1, verify=verify, identities=identities, key=key
)
