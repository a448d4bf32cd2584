"""Adyen signs items inside the body: every one counts, and each field keeps its place."""

import base64
import hmac
import json
from datetime import UTC, datetime

import pytest

from reliability.claim.signatures import Refused, Verified, configuration_error, verify


def sign(key: bytes, content: str) -> str:
    return base64.b64encode(hmac.new(key, content.encode(), "sha256").digest()).decode()


def judge(body: bytes, *secrets: str) -> Verified | Refused:
    return verify(
        "adyen",
        body=body,
        headers={},
        secrets=secrets,
        url="",
        now=datetime(2026, 11, 30, tzinfo=UTC),
        options={},
    )


KEY = b"adyen-key"
EIGHT = "PSP7:ORIG:Shop:ref:1130:EUR:CAPTURE:true"


def item(signed: str = EIGHT, **changed: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "pspReference": "PSP7",
        "originalReference": "ORIG",
        "merchantAccountCode": "Shop",
        "merchantReference": "ref",
        "amount": {"value": 1130, "currency": "EUR"},
        "eventCode": "CAPTURE",
        "success": "true",
        "reason": "",
        "additionalData": {"hmacSignature": sign(KEY, signed)},
    }
    return fields | changed


def batch(*items: object) -> bytes:
    return json.dumps(
        {"notificationItems": [{"NotificationRequestItem": item} for item in items]}
    ).encode()


@pytest.mark.parametrize(
    ("body", "verified"),
    [
        (batch(item()), True),
        (batch(item(reason="changed", paymentMethod="mc")), True),
        (batch(item(EIGHT.replace("ref", r"\:/\\/x"), merchantReference=r"\:/\\/x")), True),
        (batch(item(EIGHT.replace("ORIG", ""), originalReference=None)), True),
        (batch(item(), item()), True),
        (batch(item(), item(success="false")), False),
        (batch(item(success="false"), item()), False),
        (batch(item(success=True)), False),
        (batch(item(EIGHT.replace("ORIG", ""), originalReference=False)), False),
        (batch(item(amount={"value": "1130", "currency": "EUR"})), False),
        (batch(item(amount={"value": 1130.0, "currency": "EUR"})), False),
        (batch(item(additionalData={})), False),
        (batch(item(additionalData=None)), False),
        (batch(item(additionalData={"hmacSignature": 5})), False),
        (batch(item(), "text"), False),
        (batch(), False),
        (b'{"notificationItems": {}}', False),
        (b"[]", False),
        (b"not json", False),
    ],
)
def test_adyen_verifies_every_item_or_nothing(body: bytes, verified: bool) -> None:  # noqa: FBT001
    verdict = judge(body, KEY.hex().upper())
    assert isinstance(verdict, Verified) is verified


def test_an_adyen_signature_does_not_fit_a_second_split_of_its_fields() -> None:
    genuine = "P:ORIG:Shop:a:b:1130:EUR:CAPTURE:true"
    told = item(genuine, pspReference="P", merchantReference="a:b")
    assert isinstance(judge(batch(told), KEY.hex()), Verified)
    shifted = item(
        genuine,
        pspReference="P:ORIG",
        originalReference="Shop",
        merchantAccountCode="a",
        merchantReference="b",
    )
    assert isinstance(judge(batch(shifted), KEY.hex()), Refused)


def test_an_adyen_batch_signed_by_two_secrets_names_the_older_one() -> None:
    second = item(additionalData={"hmacSignature": sign(b"older-key", EIGHT)})
    secrets = [KEY.hex(), b"older-key".hex()]
    verdict = judge(batch(item(), second), *secrets)
    assert verdict == Verified("adyen", 1, 1, None)


def test_an_adyen_key_that_is_not_hex_cannot_be_saved() -> None:
    assert configuration_error("adyen", secrets=["not-hex"], options={})
    assert judge(batch(item()), "not-hex") == Refused("no usable secret")
