"""What every scheme must do, against signatures made here by independent code."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from reliability.claim.signatures import (
    SCHEMES,
    Refused,
    Verified,
    configuration_error,
    verify,
)

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
BODY = b'{"id":"evt_1","type":"a.b","price":1.0, "name":"Zo\xc3\xab"}'
Built = tuple[bytes, dict[str, str]]


def mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def stripe(secret: str, at: int) -> Built:
    signature = mac(secret.encode(), b"%d." % at + BODY).hex()
    return BODY, {"Stripe-Signature": f"t={at},v1={signature}"}


def standard_webhooks(secret: str, at: int) -> Built:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return BODY, {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": "v1," + b64(mac(key, b"msg_1.%d." % at + BODY)),
    }


def svix(secret: str, at: int) -> Built:
    body, sent = standard_webhooks(secret, at)
    return body, {name.replace("webhook", "svix"): value for name, value in sent.items()}


def github(secret: str, _at: int) -> Built:
    return BODY, {"X-Hub-Signature-256": "sha256=" + mac(secret.encode(), BODY).hex()}


def shopify(secret: str, _at: int) -> Built:
    return BODY, {"X-Shopify-Hmac-Sha256": b64(mac(secret.encode(), BODY))}


def gocardless(secret: str, _at: int) -> Built:
    return BODY, {"Webhook-Signature": mac(secret.encode(), BODY).hex()}


def generic(secret: str, at: int) -> Built:
    signature = mac(secret.encode(), b"%d." % at + BODY).hex()
    return BODY, {"X-Sig": "hmac " + signature, "X-Time": str(at)}


def adyen_item(secret: str, **changed: object) -> dict[str, object]:
    item: dict[str, object] = {
        "pspReference": "PSP1",
        "merchantAccountCode": "Shop",
        "merchantReference": "order:1",
        "amount": {"value": 1130, "currency": "EUR"},
        "eventCode": "AUTHORISATION",
        "success": "true",
        **changed,
    }
    signed = b"PSP1::Shop:order:1:1130:EUR:AUTHORISATION:true"
    signature = b64(mac(bytes.fromhex(secret), signed))
    return {
        "NotificationRequestItem": {"additionalData": {"hmacSignature": signature}, **item}
    }


def adyen(secret: str, _at: int) -> Built:
    batch = {"live": "false", "notificationItems": [adyen_item(secret)]}
    return json.dumps(batch).encode(), {}


@dataclass(frozen=True)
class Sender:
    scheme: str
    build: Callable[[str, int], Built]
    secret: str = "s3cret"
    other: str = "another"
    options: Mapping[str, object] = field(default_factory=dict)
    signs_time: bool = False

    def sent(self, *, secret: str | None = None, age: timedelta = timedelta(0)) -> Built:
        return self.build(secret or self.secret, int((NOW - age).timestamp()))


GENERIC = {
    "header": "X-Sig",
    "prefix": "hmac ",
    "timestamp_header": "X-Time",
    "id_pointer": "/id",
}
WHSEC, WHSEC_OTHER = "whsec_" + b64(b"k" * 24), "whsec_" + b64(b"o" * 24)
SENDERS = {
    "stripe": Sender("stripe", stripe, signs_time=True),
    "standard-webhooks": Sender(
        "standard-webhooks", standard_webhooks, WHSEC, WHSEC_OTHER, signs_time=True
    ),
    "svix": Sender("standard-webhooks", svix, WHSEC, WHSEC_OTHER, signs_time=True),
    "github": Sender("github", github),
    "shopify": Sender("shopify", shopify),
    "gocardless": Sender("gocardless", gocardless),
    "generic-hmac": Sender("generic-hmac", generic, options=GENERIC, signs_time=True),
    "adyen": Sender("adyen", adyen, "AB" * 32, "CD" * 32),
}
every_sender = pytest.mark.parametrize("sender", SENDERS.values(), ids=SENDERS)
every_sender_with_header = pytest.mark.parametrize(
    "sender", [s for n, s in SENDERS.items() if n != "adyen"], ids=lambda s: s.build.__name__
)
every_timed_sender = pytest.mark.parametrize(
    "sender", [s for s in SENDERS.values() if s.signs_time], ids=lambda s: s.build.__name__
)


def judge(sender: Sender, built: Built, *secrets: str) -> Verified | Refused:
    body, headers = built
    return verify(
        sender.scheme,
        body=body,
        headers=headers,
        secrets=secrets or (sender.secret,),
        url="https://shop.example/hooks/token/",
        now=NOW,
        options=sender.options,
    )


def test_every_scheme_but_paypal_has_a_sender_here() -> None:
    # PayPal's signature is asymmetric; its own file makes a certificate authority.
    assert {sender.scheme for sender in SENDERS.values()} == set(SCHEMES) - {"paypal"}


@every_sender
def test_a_genuine_delivery_is_verified(sender: Sender) -> None:
    signed_at = NOW if sender.signs_time else None
    assert judge(sender, sender.sent()) == Verified(sender.scheme, 0, 1, signed_at)


@every_sender
def test_the_previous_secret_still_verifies_and_is_named(sender: Sender) -> None:
    verdict = judge(sender, sender.sent(secret=sender.other), sender.secret, sender.other)
    assert isinstance(verdict, Verified)
    assert verdict.secret_index == 1


@every_sender
def test_of_two_fitting_secrets_the_first_is_named(sender: Sender) -> None:
    verdict = judge(sender, sender.sent(), sender.other, sender.secret, sender.secret)
    assert isinstance(verdict, Verified)
    assert verdict.secret_index == 1


@every_sender
def test_a_foreign_secret_is_refused(sender: Sender) -> None:
    assert judge(sender, sender.sent(), sender.other) == Refused("signature wrong")


@every_sender
def test_a_changed_body_is_refused(sender: Sender) -> None:
    body, headers = sender.sent()
    changed = body.replace(b"1130", b"1131") if sender.scheme == "adyen" else body + b" "
    assert judge(sender, (changed, headers)) == Refused("signature wrong")


@every_sender
def test_header_names_match_in_any_case(sender: Sender) -> None:
    body, headers = sender.sent()
    folded = {name.upper(): value for name, value in headers.items()}
    assert isinstance(judge(sender, (body, folded)), Verified)


@every_sender_with_header
def test_every_missing_header_is_refused(sender: Sender) -> None:
    body, headers = sender.sent()
    for name in headers:
        rest = {other: value for other, value in headers.items() if other != name}
        assert isinstance(judge(sender, (body, rest)), Refused), name
        underscored = rest | {name.replace("-", "_"): headers[name]}
        assert isinstance(judge(sender, (body, underscored)), Refused), name


@every_sender_with_header
def test_a_header_given_twice_is_refused(sender: Sender) -> None:
    body, headers = sender.sent()
    for name, value in headers.items():
        assert isinstance(judge(sender, (body, headers | {name.swapcase(): value})), Refused)
        joined = headers | {name: f"{value},{value}"}
        assert isinstance(judge(sender, (body, joined)), Refused), name


@every_sender_with_header
@pytest.mark.parametrize(
    "junk", ["", "é" * 64, "\udcff", "v1,", "t=1,v1=", "%%%", "0" * 64, " "]
)
def test_a_malformed_header_is_refused_and_never_raises(sender: Sender, junk: str) -> None:
    body, headers = sender.sent()
    for name in headers:
        assert isinstance(judge(sender, (body, headers | {name: junk})), Refused), name


@every_sender
@pytest.mark.parametrize("blank", ["", " ", "\t", "\udcff"])
def test_a_blank_or_broken_secret_fails_closed(sender: Sender, blank: str) -> None:
    assert judge(sender, sender.sent(), blank) == Refused("no usable secret")
    assert configuration_error(sender.scheme, secrets=[blank], options=sender.options)


@pytest.mark.parametrize("name", ["stripe", "standard-webhooks"])
def test_a_prefix_with_nothing_behind_it_is_no_secret(name: str) -> None:
    sender = SENDERS[name]
    forged = sender.sent(secret="whsec_")
    assert judge(sender, forged, "whsec_") == Refused("no usable secret")


@every_sender
def test_a_blank_previous_secret_does_not_lock_out_the_current_one(sender: Sender) -> None:
    verdict = judge(sender, sender.sent(), "", sender.secret)
    assert isinstance(verdict, Verified)
    assert verdict.secret_index == 1


@every_sender
def test_no_secret_at_all_is_refused(sender: Sender) -> None:
    body, headers = sender.sent()
    verdict = verify(
        sender.scheme,
        body=body,
        headers=headers,
        secrets=(),
        url="",
        now=NOW,
        options=sender.options,
    )
    assert verdict == Refused("no usable secret")


@every_timed_sender
def test_time_is_checked_on_both_sides_of_now(sender: Sender) -> None:
    limit, beyond = timedelta(seconds=300), timedelta(seconds=301)
    for sign in (1, -1):
        assert isinstance(judge(sender, sender.sent(age=sign * limit)), Verified)
        assert judge(sender, sender.sent(age=sign * beyond)) == Refused(
            "signed time outside the tolerance"
        )


@every_timed_sender
@pytest.mark.parametrize("seconds", [0, -1, 604_801, "300", 1.5])
def test_a_tolerance_that_would_switch_the_check_off_is_a_mistake(
    sender: Sender, seconds: object
) -> None:
    options = {**sender.options, "tolerance_seconds": seconds}
    body, headers = sender.sent()
    verdict = verify(
        sender.scheme,
        body=body,
        headers=headers,
        secrets=[sender.secret],
        url="",
        now=NOW,
        options=options,
    )
    assert verdict == Refused("scheme options are wrong")
    assert configuration_error(sender.scheme, secrets=[sender.secret], options=options)


@every_sender
def test_a_source_configured_right_has_nothing_to_correct(sender: Sender) -> None:
    assert (
        configuration_error(sender.scheme, secrets=[sender.secret], options=sender.options)
        is None
    )


def test_an_unknown_scheme_is_refused() -> None:
    sender = Sender("morse", github)
    assert judge(sender, sender.sent()) == Refused("unknown scheme")
    assert configuration_error("morse", secrets=["s"], options={}) == "unknown scheme"
