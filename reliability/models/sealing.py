"""Secrets at rest: AES-256-GCM under a key ring, bound to the row they belong to.

The ring is ``settings.RELIABILITY_KEY_RING`` (key id to 32 bytes): the first key seals, every key
opens. Sealed form: one byte length of the key id, key id, 12-byte nonce,
ciphertext with tag. The associated data names tenant, source and field, so that a sealed value
copied into another row does not open (NIST SP 800-38D).
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

NONCE_BYTES = 12


class CannotUnseal(Exception):
    """No key of the ring opens this value, or it was moved from its row."""


def _ring() -> dict[str, bytes]:
    ring: dict[str, bytes] = settings.RELIABILITY_KEY_RING
    if not ring:
        raise ImproperlyConfigured(
            "RELIABILITY_KEY_RING is empty: secrets cannot be sealed. Set it to id:base64key."
        )
    return ring


def seal(secret: str, *, about: str) -> bytes:
    """Seal under the ring's first key; ``about`` is the associated data and must be repeated."""
    key_id, key = next(iter(_ring().items()))
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, secret.encode(), about.encode())
    return bytes([len(key_id)]) + key_id.encode() + nonce + sealed


def unseal(sealed: bytes, *, about: str) -> str:
    """Open what ``seal`` made. Raises ``CannotUnseal``, never says which key was missing."""
    size = sealed[0] + 1
    key_id, nonce = sealed[1:size].decode(), sealed[size : size + NONCE_BYTES]
    key = _ring().get(key_id)
    if key is None:
        raise CannotUnseal("the key ring lacks the key this secret was sealed with")
    try:
        return (
            AESGCM(key).decrypt(nonce, sealed[size + NONCE_BYTES :], about.encode()).decode()
        )
    except InvalidTag:
        raise CannotUnseal("the secret does not belong to this row") from None
