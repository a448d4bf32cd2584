"""PayPal's scheme against a certificate authority made here: chain, place, time, checksum."""

import base64
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reliability.claim.signatures import Refused, Verified, configuration_error, verify
from reliability.claim.signatures.paypal import certificate_url

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
BODY = b'{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}'
URL = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594"
LIVE, SANDBOX = (
    "messageverificationcerts.paypal.com",
    "messageverificationcerts.sandbox.paypal.com",
)
WEBHOOK = "4JH86294D6297924G"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Issued:
    key: Key
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def issue(key: Key, name: str, *, by: Issued | None = None, days: int = 30) -> Issued:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = by or Issued(key, None)  # type: ignore[arg-type]
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=10))
        .not_valid_after(NOW + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(authority, critical=False)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=by is None, **usage),
            critical=True,
        )
    )
    if by:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        ).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return Issued(key, builder.sign(signer.key, SHA256()))


ROOT = issue(rsa_key("root"), "Root of this test")
LEAF = issue(rsa_key("leaf"), LIVE, by=ROOT)


def signed(
    *,
    leaf: Issued = LEAF,
    at: datetime = NOW,
    webhook: str = WEBHOOK,
    url: str = URL,
    digest: SHA256 | SHA1 | None = None,
) -> dict[str, str]:
    time_text = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    content = f"tx-1|{time_text}|{webhook}|{zlib.crc32(BODY)}".encode()
    key = leaf.key
    signature = (
        key.sign(content, PKCS1v15(), digest or SHA256())
        if isinstance(key, rsa.RSAPrivateKey)
        else key.sign(content, ec.ECDSA(SHA256()))
    )
    return {
        "PAYPAL-TRANSMISSION-ID": "tx-1",
        "PAYPAL-TRANSMISSION-TIME": time_text,
        "PAYPAL-TRANSMISSION-SIG": base64.b64encode(signature).decode(),
        "PAYPAL-AUTH-ALGO": "SHA256withRSA",
        "PAYPAL-CERT-URL": url,
    }


def judge(headers: dict[str, str], *secrets: str, **options: object) -> Verified | Refused:
    return verify(
        "paypal",
        body=BODY,
        headers=headers,
        secrets=secrets or (WEBHOOK,),
        url="",
        now=NOW,
        options={"certificates": {URL: LEAF.pem}, "roots": ROOT.pem, **options},
    )


def test_a_delivery_signed_by_a_trusted_certificate_is_verified() -> None:
    assert judge(signed()) == Verified("paypal", 0, 1, NOW)
    assert judge(signed(), "ANOTHER-WEBHOOK", WEBHOOK) == Verified("paypal", 1, 1, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"PAYPAL-TRANSMISSION-ID": "tx-2"},
        {"PAYPAL-TRANSMISSION-ID": "\udcff"},
        {"PAYPAL-TRANSMISSION-TIME": "2026-11-30T09:00:01Z"},
        {"PAYPAL-TRANSMISSION-TIME": "yesterday"},
        {"PAYPAL-TRANSMISSION-TIME": "2026-11-30T09:00:00"},
        {"PAYPAL-TRANSMISSION-SIG": "AAAA"},
        {"PAYPAL-TRANSMISSION-SIG": "é"},
        {"PAYPAL-AUTH-ALGO": "SHA1withRSA"},
        {"paypal-auth-algo": "SHA256withRSA"},
    ],
)
def test_a_changed_header_is_refused(changed: dict[str, str]) -> None:
    assert isinstance(judge(signed() | changed), Refused)


def test_every_missing_header_is_refused() -> None:
    headers = signed()
    for name in headers:
        rest = {other: value for other, value in headers.items() if other != name}
        assert judge(rest) == Refused("signature missing")


def test_a_signature_for_another_webhook_or_body_is_refused() -> None:
    assert judge(signed(webhook="OTHER")) == Refused("signature wrong")
    assert judge(signed(), "OTHER") == Refused("signature wrong")
    assert judge(signed(), "") == Refused("no usable secret")
    assert judge(signed(digest=SHA1())) == Refused("signature wrong")  # noqa: S303


def test_a_message_is_refused_three_days_and_an_hour_away_from_now() -> None:
    limit = timedelta(days=3, hours=1)
    for sign in (1, -1):
        assert isinstance(judge(signed(at=NOW + sign * limit)), Verified)
        late = signed(at=NOW + sign * (limit + timedelta(seconds=1)))
        assert judge(late) == Refused("signed time outside the tolerance")


@pytest.mark.parametrize("days", [-11, 31])
def test_the_certificate_must_be_valid_at_the_time_of_receipt(days: int) -> None:
    then = NOW + timedelta(days=days)
    verdict = verify(
        "paypal",
        body=BODY,
        headers=signed(at=then),
        secrets=[WEBHOOK],
        url="",
        now=then,
        options={"certificates": {URL: LEAF.pem}, "roots": ROOT.pem},
    )
    assert verdict == Refused("certificate not trusted")


def small_or_foreign_leaves() -> dict[str, Issued]:
    stranger = issue(rsa_key("stranger"), "Stranger's root")
    return {
        "foreign root": issue(rsa_key("leaf"), LIVE, by=stranger),
        "self-signed": issue(rsa_key("leaf"), LIVE),
        "expired": issue(rsa_key("leaf"), LIVE, by=ROOT, days=-1),
        "another name": issue(rsa_key("leaf"), "evil.example", by=ROOT),
        "sandbox name": issue(rsa_key("leaf"), SANDBOX, by=ROOT),
        "short key": issue(rsa_key("short", 1024), LIVE, by=ROOT),
        "elliptic key": issue(ec.generate_private_key(ec.SECP256R1()), LIVE, by=ROOT),
    }


@pytest.mark.parametrize("name", small_or_foreign_leaves())
def test_a_certificate_that_does_not_speak_for_paypal_is_refused(name: str) -> None:
    leaf = small_or_foreign_leaves()[name]
    verdict = judge(signed(leaf=leaf), certificates={URL: leaf.pem})
    assert verdict == Refused("certificate not trusted")


@pytest.mark.parametrize(
    "options",
    [
        {"certificates": {}},
        {"certificates": {URL: b"junk"}},
        {"certificates": {URL: b""}},
        {"certificates": {URL: LEAF.pem + b"\n" * 16_384}},
        {"roots": b""},
        {"roots": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
    ],
)
def test_nothing_is_trusted_without_certificate_and_root(options: dict[str, object]) -> None:
    assert judge(signed(), **options) == Refused("certificate not trusted")


@pytest.mark.parametrize(
    "options", [{"roots": "text"}, {"certificates": [URL]}, {"certificates": {URL: "text"}}]
)
def test_trust_material_of_another_kind_is_a_mistake(options: dict[str, object]) -> None:
    assert judge(signed(), **options) == Refused("scheme options are wrong")
    assert configuration_error("paypal", secrets=[WEBHOOK], options=options)


PLACES_REFUSED = [
    "http://api.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com.attacker.example/v1/notifications/certs/CERT-1",
    "https://api.paypal.com@attacker.example/v1/notifications/certs/CERT-1",
    "https://user@api.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com:8443/v1/notifications/certs/CERT-1",
    "https://www.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com/v1/notifications/certs/../../CERT-1",
    "https://api.paypal.com/other/CERT-1",
    "https://api.paypal.com/v1/notifications/certs/",
    "https://api.paypal.com/v1/notifications/certs/CERT-1?x=1",
    "https://api.paypal.com/v1/notifications/certs/CERT-1#x",
    "https://api.paypal.com\\@attacker.example/v1/notifications/certs/CERT-1",
    "https://[::1/v1/notifications/certs/CERT-1",
    "//api.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com/v1/notifications/certs/CÉRT-1",
    "",
]


@pytest.mark.parametrize("url", PLACES_REFUSED)
def test_a_certificate_from_any_other_place_is_neither_used_nor_fetched(url: str) -> None:
    verdict = judge(signed(url=url), certificates={url: LEAF.pem})
    assert verdict == Refused("certificate not trusted")
    assert certificate_url({"Paypal-Cert-Url": url}) is None


def test_paypals_own_places_are_fetched() -> None:
    assert certificate_url({"paypal-cert-url": URL}) == URL
    assert certificate_url({}) is None
    sandbox = URL.replace("api.", "api.sandbox.")
    leaf = issue(rsa_key("leaf"), SANDBOX, by=ROOT)
    verdict = judge(signed(leaf=leaf, url=sandbox), certificates={sandbox: leaf.pem})
    assert isinstance(verdict, Verified)
