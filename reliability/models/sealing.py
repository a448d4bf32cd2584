"""Secrets at rest: AES-256-GCM under a key ring, bound to the row they belong to.

The ring comes from ``settings.RELIABILITY_KEY_RING`` (``id:base64key,id:base64key``): the first
key seals, every key opens. Sealed form: one byte length of the key id, key id, 12-byte nonce,
ciphertext with tag. The associated data names tenant, source and field, so that a sealed value
copied into another row does not open (NIST SP 800-38D).
"""

import base64
import binascii
import os
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

KEY_BYTES = 32
NONCE_BYTES = 12


class CannotUnseal(Exception):
    """No key of the ring opens this value, or it was moved from its row."""


@cache
def _ring(text: str) -> dict[str, AESGCM]:
    ring = {}
    for entry in filter(None, text.split(",")):
        key_id, _, encoded = entry.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            key = b""
        if not key_id or len(key) != KEY_BYTES:
            raise ImproperlyConfigured(
                "RELIABILITY_KEY_RING: write id:base64key,… with 32-byte keys."
            )
        ring[key_id] = AESGCM(key)
    if not ring:
        raise ImproperlyConfigured("RELIABILITY_KEY_RING is empty: secrets cannot be sealed.")
    return ring


def seal(secret: str, *, about: str) -> bytes:
    """Seal under the ring's first key; ``about`` is the associated data and must be repeated."""
    ring = _ring(settings.RELIABILITY_KEY_RING)
    key_id = next(iter(ring))
    nonce = os.urandom(NONCE_BYTES)
    sealed = ring[key_id].encrypt(nonce, secret.encode(), about.encode())
    return bytes([len(key_id)]) + key_id.encode() + nonce + sealed


def unseal(sealed: bytes, *, about: str) -> str:
    """Open what ``seal`` made. Raises ``CannotUnseal``, never says which key was missing."""
    size = sealed[0] + 1
    key_id, nonce = sealed[1:size].decode(), sealed[size : size + NONCE_BYTES]
    key = _ring(settings.RELIABILITY_KEY_RING).get(key_id)
    if key is None:
        raise CannotUnseal("the key ring lacks the key this secret was sealed with")
    try:
        return key.decrypt(nonce, sealed[size + NONCE_BYTES :], about.encode()).decode()
    except InvalidTag:
        raise CannotUnseal("the secret does not belong to this row") from None
