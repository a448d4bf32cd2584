"""Sign deliveries as each provider does, by code that shares nothing with the verifiers."""

import base64
import binascii
import datetime as dt
import hashlib
import hmac
import json
import secrets
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from django.utils import timezone

from reliability.models import Source, SourceSecret
from tests.database import world

ADYEN_KEY = "44782def547aaa06c910c43932b1eb0c71fc68d9d0c057550c48ec2acf6ba056"
WEBHOOK_ID = "1JE4291016473214C"
CERTIFICATE_URL = "https://api.paypal.com/v1/notifications/certs/CERT-made-for-tests"
SECRETS = {
    "stripe": world.SECRET,
    "standard-webhooks": world.SECRET,
    "adyen": ADYEN_KEY,
    "paypal": WEBHOOK_ID,
}
OTHER_SECRET = "a secret that only we and the tests know"


def source(preset: str, slug: str = "", **columns: Any) -> Source:
    """Make a source of a preset, with a secret in its scheme's form."""
    made = Source.objects.create(
        tenant=world.tenant(), slug=slug or preset, preset=preset, scheme=preset, **columns
    )
    secret = SECRETS.get(preset, OTHER_SECRET)
    SourceSecret.objects.rotate(made, secret, overlap_until=timezone.now())
    return made


def mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


def sign(scheme: str, body: bytes, *, key: str = "", kind: str = "test") -> dict[str, str]:
    """Return the headers a delivery of this body comes with; ``key`` where it is a header."""
    secret, key = SECRETS.get(scheme, OTHER_SECRET).encode(), key or secrets.token_hex(8)
    match scheme:
        case "stripe":
            return _stripe(secret, body)
        case "standard-webhooks":
            return _standard(secret, body, key)
        case "github" | "shopify":
            return _named(scheme, mac(secret, body), key, kind)
        case "paypal":
            return paypal(body)
    # Adyen's signature stands in the body.
    names = {"gocardless": "Webhook-Signature", "generic-hmac": "X-Signature"}
    return {names[scheme]: mac(secret, body).hex()} if scheme in names else {}


def _stripe(secret: bytes, body: bytes) -> dict[str, str]:
    now = int(timezone.now().timestamp())
    return {"Stripe-Signature": f"t={now},v1={mac(secret, f'{now}.'.encode() + body).hex()}"}


def _standard(secret: bytes, body: bytes, key: str) -> dict[str, str]:
    now = int(timezone.now().timestamp())
    raw = base64.b64decode(secret.removeprefix(b"whsec_"))
    signed = base64.b64encode(mac(raw, f"{key}.{now}.".encode() + body)).decode()
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return dict(zip(names, (key, str(now), f"v1,{signed}"), strict=True))


def _named(scheme: str, signed: bytes, key: str, kind: str) -> dict[str, str]:
    if scheme == "github":
        return {
            "X-Hub-Signature-256": f"sha256={signed.hex()}",
            "X-GitHub-Event": kind,
            "X-GitHub-Delivery": key,
        }
    return {
        "X-Shopify-Hmac-Sha256": base64.b64encode(signed).decode(),
        "X-Shopify-Topic": kind,
        "X-Shopify-Event-Id": key,
    }


def adyen(*items: dict[str, Any]) -> bytes:
    """Return a body whose items carry their MACs."""
    wrapped = [{"NotificationRequestItem": signed_item(item)} for item in items]
    return json.dumps({"live": "false", "notificationItems": wrapped}).encode()


def signed_item(item: dict[str, Any], *, key: str = ADYEN_KEY) -> dict[str, Any]:
    amount = item.get("amount", {})
    fields = [
        item.get("pspReference", ""), item.get("originalReference", ""),
        item.get("merchantAccountCode", ""), item.get("merchantReference", ""),
        str(amount.get("value", "")), amount.get("currency", ""),
        item.get("eventCode", ""), item.get("success", ""),
    ]  # fmt: skip
    content = ":".join(field or "" for field in fields).encode()
    signature = binascii.b2a_base64(mac(bytes.fromhex(key), content), newline=False).decode()
    more = item.get("additionalData", {}) | {"hmacSignature": signature}
    return item | {"additionalData": more}


@dataclass(frozen=True)
class Authority:
    """A root of our own and a leaf with PayPal's name; as PEM, with the leaf's key."""

    root: bytes
    leaf: bytes
    key: rsa.RSAPrivateKey


@cache
def authority() -> Authority:
    top, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A root for tests")])
    root = _certificate(name, name, top, top, host=None)
    host = "messageverificationcerts.paypal.com"
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    leaf = _certificate(subject, name, key, top, host=host)
    return Authority(_pem(root), _pem(leaf), key)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPrivateKey,
    by: rsa.RSAPrivateKey,
    *,
    host: str | None,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    made = (
        x509.CertificateBuilder()
        .subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=90))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        .add_extension(identifier(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=host is None,
                          crl_sign=host is None, **usage), critical=True,
        )
    )  # fmt: skip
    if host is not None:
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        made = made.add_extension(names, critical=False).add_extension(server, critical=False)
    return made.sign(by, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def paypal(body: bytes, *, webhook_id: str = WEBHOOK_ID) -> dict[str, str]:
    now = timezone.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    message = secrets.token_hex(8)
    content = f"{message}|{now}|{webhook_id}|{zlib.crc32(body)}".encode()
    signed = authority().key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    return {
        "Paypal-Transmission-Id": message, "Paypal-Transmission-Time": now,
        "Paypal-Transmission-Sig": base64.b64encode(signed).decode(),
        "Paypal-Auth-Algo": "SHA256withRSA", "Paypal-Cert-Url": CERTIFICATE_URL,
    }  # fmt: skip


def gocardless(*events: dict[str, Any]) -> bytes:
    return json.dumps({"events": list(events)}).encode()
