"""Decides whether a certificate speaks for PayPal, and whether it signed something."""

from collections.abc import Mapping
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from reliability.claim.signatures.verdicts import Options

PEM_BYTES_MAX = 16 * 1024
ROOTS_BYTES_MAX = 1024 * 1024
KEY_BITS_MIN = 2048


def trusted_key(
    options: Options, url: str, *, name: str, now: datetime
) -> RSAPublicKey | None:
    """Return the key of the certificate kept for the URL, if its chain holds now; else ``None``.

    The chain must end in one of the source's roots and the leaf must bear the name
    (RFC 5280, RFC 6125). The first certificate in the PEM is the leaf.
    """
    kept = options.get("certificates")
    chain = _certificates(kept.get(url) if isinstance(kept, Mapping) else None, PEM_BYTES_MAX)
    roots = _certificates(options.get("roots"), ROOTS_BYTES_MAX)
    if not chain or not roots:
        return None
    leaf, *between = chain
    try:
        verifier = (
            PolicyBuilder()
            .store(Store(roots))
            .time(now)
            .build_server_verifier(x509.DNSName(name))
        )
        verifier.verify(leaf, between)
        public = leaf.public_key()
    except (VerificationError, ValueError, UnsupportedAlgorithm):
        return None
    if isinstance(public, RSAPublicKey) and public.key_size >= KEY_BITS_MIN:
        return public
    return None


def is_signed(public: RSAPublicKey, signature: bytes, content: bytes) -> bool:
    """Tell whether the key made this RSASSA-PKCS1-v1_5 signature with SHA-256 (RFC 8017)."""
    try:
        public.verify(signature, content, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _certificates(pem: object, bytes_max: int) -> list[x509.Certificate]:
    if not isinstance(pem, bytes) or not 0 < len(pem) <= bytes_max:
        return []
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []
