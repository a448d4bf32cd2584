"""Second opinions: the providers' own SDKs, arbitrary input, and the shape of the code."""

import ast
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from stripe import WebhookSignature

from reliability.claim import signatures
from reliability.claim.body import Unparseable, elements, load, member, pointer
from reliability.claim.signatures import SCHEMES, Refused, Verified, identities, verify

AT = 1_796_000_000
NOW = datetime.fromtimestamp(AT, UTC)
GENERIC = {"header": "X-Sig", "timestamp_header": "X-Time", "id_header": "X-Id"}
HEADERS = [
    "Stripe-Signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "X-Hub-Signature-256",
    "X-Shopify-Hmac-Sha256",
    "Webhook-Signature",
    "X-Sig",
    "X-Time",
    "X-Id",
    "Paypal-Transmission-Id",
    "Paypal-Transmission-Time",
    "Paypal-Transmission-Sig",
    "Paypal-Auth-Algo",
    "Paypal-Cert-Url",
    "Content-Type",
]
texts = st.text() | st.sampled_from(
    [
        f"t={AT},v1=" + "0" * 64,
        f"t={AT},v1=é",
        str(AT),
        "v1,AAAA",
        "v1a,AAAA",
        "sha256=" + "0" * 64,
        "SHA256withRSA",
        "https://api.paypal.com/v1/notifications/certs/CERT-1",
        "2026-11-30T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "\ud800",
    ]
)
json_like = st.recursive(
    st.sampled_from([b"1", b'"x"', b"null", b"1e400", b'"\\ud800"', b"\xff"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: b"[" + b",".join(parts) + b"]")
        | st.lists(
            st.tuples(
                st.sampled_from(
                    [b"id", b"events", b"notificationItems", b"NotificationRequestItem"]
                ),
                inner,
            ),
            max_size=3,
        ).map(lambda pairs: b"{" + b",".join(b'"%s":%s' % pair for pair in pairs) + b"}")
    ),
    max_leaves=12,
)


@given(body=st.text(), secret=st.text(min_size=1).filter(str.strip))
@example(body="", secret="whsec_x")
def test_what_stripes_sdk_signs_we_accept(body: str, secret: str) -> None:
    header = WebhookSignature.generate_signature_header(body, secret, AT)
    verdict = verify(
        "stripe",
        body=body.encode(),
        headers={"Stripe-Signature": header},
        secrets=[secret],
        url="",
        now=NOW,
        options={},
    )
    assert isinstance(verdict, Verified) or secret == "whsec_"


@given(body=st.text(), message_id=st.text(min_size=1), key=st.binary(min_size=1))
def test_what_the_standard_webhooks_sdk_signs_we_accept(
    body: str, message_id: str, key: bytes
) -> None:
    secret = "whsec_" + b64encode(key).decode()
    verdict = verify(
        "standard-webhooks",
        body=body.encode(),
        headers={
            "webhook-id": message_id,
            "webhook-timestamp": str(AT),
            "webhook-signature": Webhook(secret).sign(message_id, NOW, body),
        },
        secrets=[secret],
        url="",
        now=NOW,
        options={},
    )
    assert isinstance(verdict, Verified)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(
    body=st.binary() | json_like,
    headers=st.dictionaries(st.sampled_from(HEADERS) | st.text(), texts),
    secrets=st.lists(
        st.text() | st.sampled_from(["whsec_AAAA", "whpk_" + "A" * 43 + "=", "ab"])
    ),
)
def test_arbitrary_input_never_raises_and_is_never_verified(
    scheme: str, body: bytes, headers: dict[str, str], secrets: list[str]
) -> None:
    options = GENERIC if scheme == "generic-hmac" else {}
    verdict = verify(
        scheme,
        body=body,
        headers=headers,
        secrets=secrets,
        url="",
        now=NOW,
        options=options,
    )
    assert isinstance(verdict, Refused)
    identities(scheme, body=body, headers=headers, options=options)


@given(raw=json_like | st.binary())
def test_what_the_loader_takes_can_be_cut_into_the_same_parts(raw: bytes) -> None:
    try:
        value = load(raw)
    except Unparseable:
        return
    parts = elements(raw)
    assert len(parts) == (len(value) if isinstance(value, list) else 0)
    if isinstance(value, dict):
        for name in value:
            cut = member(raw, name)
            assert cut is not None
            assert load(b"[" + cut + b"]") == [pointer(value, "/" + name)]


FOLDER = Path(str(signatures.__file__)).parent
SECRET_WORDS = ("mac", "digest", "signature", "expected", "secret", "key")


@pytest.mark.parametrize("source", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_plain_comparison_touches_a_mac(source: Path) -> None:
    """Equality, order and membership leak how far two values agree."""
    leaky = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Lt, ast.Gt, ast.LtE, ast.GtE)
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], leaky):
            sides = [node.left, *node.comparators]
            names = [side.id for side in sides if isinstance(side, ast.Name)]
            assert not [name for name in names if name.startswith(SECRET_WORDS)], (
                f"{source.name}:{node.lineno}: {ast.unparse(node)}"
            )


def test_the_comparison_is_in_constant_time_on_bytes() -> None:
    comparing = ast.unparse(ast.parse((FOLDER / "mac.py").read_text()))
    assert comparing.count("hmac.compare_digest(mac, signature)") == 1
