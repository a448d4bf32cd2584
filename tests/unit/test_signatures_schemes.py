"""What is peculiar to one scheme: header forms, versions and key forms."""

import base64
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reliability.claim.signatures import Refused, Verified, configuration_error, verify

AT = 1_796_000_000
NOW = datetime.fromtimestamp(AT + 2, UTC)
BODY = b'{"id": "evt_9"}'


def mac(key: bytes, content: bytes, algorithm: str = "sha256") -> bytes:
    return hmac.new(key, content, algorithm).digest()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def judge(
    scheme: str,
    headers: Mapping[str, str],
    *secrets: str,
    body: bytes = BODY,
    options: Mapping[str, object] | None = None,
) -> Verified | Refused:
    return verify(
        scheme,
        body=body,
        headers=headers,
        secrets=secrets,
        url="",
        now=NOW,
        options=options or {},
    )


STRIPE = mac(b"whsec_a", b"%d." % AT + BODY).hex()
STRIPE_WRONG = mac(b"whsec_b", b"%d." % AT + BODY).hex()


@pytest.mark.parametrize(
    "value",
    [
        f"t={AT},v1={STRIPE}",
        f"v1={STRIPE},t={AT}",
        f"t={AT},v1={STRIPE_WRONG},v1={STRIPE}",
        f"t={AT},v1={STRIPE},v0={STRIPE_WRONG}",
        f"t={AT},v9=ünknown,v1={STRIPE}",
    ],
)
def test_stripe_takes_any_fitting_v1_in_any_order(value: str) -> None:
    assert isinstance(judge("stripe", {"Stripe-Signature": value}, "whsec_a"), Verified)


@pytest.mark.parametrize(
    "value",
    [
        f"t={AT},v0={STRIPE}",
        f"t={AT},v1={STRIPE[:32]}",
        f"t={AT},v1={STRIPE.upper()}",
        f"t={AT + 1},v1={STRIPE}",
        f"t={AT},t={AT},v1={STRIPE}",
        f"t={AT + 1},t={AT},v1={STRIPE}",
        f"t={AT}.0,v1={STRIPE}",
        f"t=+{AT},v1={STRIPE}",
        f"t=,v1={STRIPE}",
        f"t={AT}{AT},v1={STRIPE}",
        f"t={AT},v1={STRIPE},v1=zz",
        f"t={AT},v1={STRIPE},junk",
        f"v1={STRIPE}",
        f"t={AT}",
        f"t={AT},{','.join(['v1=' + STRIPE] * 33)}",
    ],
)
def test_stripe_refuses_every_other_form(value: str) -> None:
    assert isinstance(judge("stripe", {"Stripe-Signature": value}, "whsec_a"), Refused)


def test_stripe_checks_bytes_that_are_no_text() -> None:
    body = b'{"id":"evt_1","x":"\xff\xfe"}'
    signature = mac(b"whsec_a", b"%d." % AT + body).hex()
    headers = {"Stripe-Signature": f"t={AT},v1={signature}"}
    assert isinstance(judge("stripe", headers, "whsec_a", body=body), Verified)


SHARED = b"0123456789abcdef01234567"
WHSEC = "whsec_" + b64(SHARED)
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"7" * 32)
PUBLIC = PRIVATE.public_key().public_bytes_raw()
WHPK = "whpk_" + b64(PUBLIC)
CONTENT = b"msg_7.%d." % AT + BODY
V1, V1A = "v1," + b64(mac(SHARED, CONTENT)), "v1a," + b64(PRIVATE.sign(CONTENT))
V1_BY_PUBLIC_KEY = "v1," + b64(mac(PUBLIC, CONTENT))


def standard(signature: str, **changed: str) -> dict[str, str]:
    sent = {
        "webhook-id": "msg_7",
        "webhook-timestamp": str(AT),
        "webhook-signature": signature,
    }
    return sent | {name.replace("_", "-"): value for name, value in changed.items()}


@pytest.mark.parametrize(
    ("signature", "secrets", "index"),
    [
        (V1, [WHSEC], 0),
        (V1, [WHSEC.removeprefix("whsec_")], 0),
        (f"v1,AAAA v2,AAAA {V1} v1,AAAA", [WHSEC], 0),
        (f"no-comma v1,=%= {V1}", [WHSEC], 0),
        (V1A, [WHPK], 0),
        (f"{V1A} {V1}", [WHPK, WHSEC], 0),
        (f"{V1A} {V1}", [WHSEC, WHPK], 0),
        (V1A, [WHSEC, WHPK], 1),
    ],
)
def test_standard_webhooks_takes_a_signature_of_either_kind(
    signature: str, secrets: list[str], index: int
) -> None:
    verdict = judge("standard-webhooks", standard(signature), *secrets)
    assert verdict == Verified("standard-webhooks", index, 1, datetime.fromtimestamp(AT, UTC))


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        (standard(V1.replace("v1,", "v2,")), WHSEC),
        (standard(V1.replace("v1,", "v1a,")), WHSEC),
        (standard(V1A.replace("v1a,", "v1,")), WHPK),
        (standard(V1A), WHSEC),
        (standard(V1_BY_PUBLIC_KEY), WHPK),
        (standard(V1_BY_PUBLIC_KEY), "whsk_" + b64(PUBLIC)),
        (standard(V1, webhook_id="msg_8"), WHSEC),
        (standard(V1, webhook_timestamp=f"{AT}.0"), WHSEC),
        (standard(V1, webhook_timestamp=f" {AT}"), WHSEC),
        (standard(V1, webhook_timestamp="hello"), WHSEC),
        (standard(V1, svix_id="msg_8"), WHSEC),
        (standard(V1, svix_signature=V1A), WHSEC),
        (standard(" ".join([V1] * 33)), WHSEC),
        (standard(V1.removesuffix("=")[:-4]), WHSEC),
        (standard(V1A), "whpk_" + b64(PUBLIC[:31])),
        (standard("v1a," + b64(PRIVATE.sign(CONTENT + b" "))), WHPK),
        (standard("v1a," + b64(b"0" * 63)), WHPK),
    ],
)
def test_standard_webhooks_refuses_confusion_and_conflict(
    headers: dict[str, str], secret: str
) -> None:
    assert isinstance(judge("standard-webhooks", headers, secret), Refused)


def test_both_header_families_may_be_sent_if_they_agree() -> None:
    sent = standard(V1)
    both = sent | {name.replace("webhook", "svix"): value for name, value in sent.items()}
    assert isinstance(judge("standard-webhooks", both, WHSEC), Verified)


GITHUB = mac(b"It's mine", BODY).hex()


@pytest.mark.parametrize(
    "value",
    [
        GITHUB,
        "sha256=" + GITHUB.upper(),
        "SHA256=" + GITHUB,
        "sha1=" + mac(b"It's mine", BODY, "sha1").hex(),
        "sha256=" + mac(b"It's mine", BODY, "sha1").hex(),
        f"sha256={'0' * 64},sha256={GITHUB}",
        f"sha256={GITHUB[:-2]}",
        f"sha256={GITHUB} ",
    ],
)
def test_github_refuses_every_form_but_its_own(value: str) -> None:
    assert isinstance(judge("github", {"X-Hub-Signature-256": value}, "It's mine"), Refused)


def test_github_does_not_look_at_the_sha1_header() -> None:
    sha1 = {"X-Hub-Signature": "sha1=" + mac(b"s", BODY, "sha1").hex()}
    assert judge("github", sha1, "s") == Refused("signature missing")


SHOPIFY = b64(mac(b"secret", BODY))


@pytest.mark.parametrize(
    ("headers", "verdict"),
    [
        ({"Shopify-Hmac-Sha256": SHOPIFY}, Verified("shopify", 0, 1, None)),
        (
            {"Shopify-Hmac-Sha256": SHOPIFY, "X-Shopify-Hmac-Sha256": SHOPIFY},
            Verified("shopify", 0, 1, None),
        ),
        (
            {"Shopify-Hmac-Sha256": SHOPIFY, "X-Shopify-Hmac-Sha256": b64(b"0" * 32)},
            Refused("header given twice"),
        ),
        ({"X-Shopify-Hmac-Sha256": mac(b"secret", BODY).hex()}, Refused("signature wrong")),
        ({"X-Shopify-Hmac-Sha256": "%%%"}, Refused("signature malformed")),
    ],
)
def test_shopify_takes_its_old_and_new_header(
    headers: dict[str, str], verdict: Verified | Refused
) -> None:
    assert judge("shopify", headers, "secret") == verdict


PLAIN = {"header": "X-Sig", "id_pointer": "/id"}


@pytest.mark.parametrize(
    ("changed", "secret", "value"),
    [
        ({}, "k", mac(b"k", BODY).hex()),
        ({}, "k", mac(b"k", BODY).hex().upper()),
        ({"encoding": "base64"}, "k", b64(mac(b"k", BODY))),
        ({"algorithm": "sha384"}, "k", mac(b"k", BODY, "sha384").hex()),
        ({"algorithm": "sha512", "prefix": "v="}, "k", "v=" + mac(b"k", BODY, "sha512").hex()),
        ({"algorithm": "sha1", "allow_sha1": True}, "k", mac(b"k", BODY, "sha1").hex()),
        ({"secret_encoding": "hex"}, "6B", mac(b"k", BODY).hex()),
        ({"secret_encoding": "base64"}, "aw==", mac(b"k", BODY).hex()),
    ],
)
def test_generic_hmac_follows_its_options(
    changed: dict[str, object], secret: str, value: str
) -> None:
    options = PLAIN | changed
    assert isinstance(
        judge("generic-hmac", {"X-Sig": value}, secret, options=options), Verified
    )
    cut = value[:-8]
    assert isinstance(judge("generic-hmac", {"X-Sig": cut}, secret, options=options), Refused)


def test_generic_hmac_agrees_with_rfc_4231_test_case_2() -> None:
    value = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    body = b"what do ya want for nothing?"
    verdict = judge("generic-hmac", {"X-Sig": value}, "Jefe", body=body, options=PLAIN)
    assert isinstance(verdict, Verified)


@pytest.mark.parametrize(
    "changed",
    [
        {"header": ""},
        {"header": "X Sig"},
        {"algorithm": "md5"},
        {"algorithm": "sha1"},
        {"algorithm": 256},
        {"encoding": "rot13"},
        {"secret_encoding": "utf-16"},
        {"id_pointer": ""},
        {"id_pointer": "id"},
        {"id_header": "X-Id"},
        {"type_pointer": "/t", "type_header": "X-T"},
        {"type_header": "X\r\nT"},
    ],
)
def test_generic_hmac_with_wrong_options_verifies_nothing(changed: dict[str, object]) -> None:
    options = PLAIN | changed
    verdict = judge("generic-hmac", {"X-Sig": "0" * 32}, "k", options=options)
    assert verdict == Refused("scheme options are wrong")
    assert configuration_error("generic-hmac", secrets=["k"], options=options)
