"""A test event passes the verifier of its scheme, which shares no code with its sender."""

from datetime import UTC, datetime
from typing import Any

import pytest

from reliability.claim.presets import PRESETS
from reliability.claim.signatures import Identity, Verified, identities, verify
from reliability.outbound.senders import CannotSign, sample_delivery

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HEX = "44782def547aaa06c910c43932b1eb0c71fc68d9d0c057550c48ec2acf6ba056"
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GENERIC = dict(PRESETS["generic-hmac"].options)
TIMED: dict[str, Any] = {
    "header": "X-Sig", "prefix": "v0=", "encoding": "base64", "algorithm": "sha512",
    "secret_encoding": "hex", "timestamp_header": "X-Time", "timestamp_separator": ":",
    "id_pointer": "/meta/event~1id", "type_header": "X-Type", "time_pointer": "/meta/at",
}  # fmt: skip
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("stripe", WHSEC, {}),
    ("standard-webhooks", WHSEC, {}),
    ("standard-webhooks", "c2VjcmV0", {}),
    ("github", HEX, {}),
    ("shopify", HEX, {}),
    ("gocardless", HEX, {}),
    ("adyen", HEX, {}),
    ("generic-hmac", HEX, GENERIC),
    ("generic-hmac", "c2VjcmV0", GENERIC | {"secret_encoding": "base64"}),
    ("generic-hmac", HEX, TIMED),
]


@pytest.mark.parametrize(("scheme", "secret", "options"), CASES)
def test_the_door_would_take_it_in_under_the_key_it_names(
    scheme: str, secret: str, options: dict[str, Any]
) -> None:
    sent = sample_delivery(scheme, "test_1", secret=secret, options=options, now=NOW)
    verdict = verify(
        scheme, body=sent.body, headers=sent.headers, secrets=[secret], url="", now=NOW,
        options=options,
    )  # fmt: skip
    assert isinstance(verdict, Verified)
    found = identities(scheme, body=sent.body, headers=sent.headers, options=options)
    assert isinstance(found, list)
    [event] = found
    assert isinstance(event, Identity)
    assert (event.key, event.event_type) == (sent.key, "reliability.test")
    assert "test_1" in event.key


@pytest.mark.parametrize(("scheme", "secret", "options"), CASES)
def test_another_secret_does_not_fit_it(
    scheme: str, secret: str, options: dict[str, Any]
) -> None:
    sent = sample_delivery(scheme, "test_1", secret=secret, options=options, now=NOW)
    other = "ab" * 32 if secret == HEX else "whsec_b3RoZXI="
    verdict = verify(
        scheme, body=sent.body, headers=sent.headers, secrets=[other], url="", now=NOW,
        options=options,
    )  # fmt: skip
    assert not isinstance(verdict, Verified)


def test_what_only_the_provider_can_sign_is_said() -> None:
    with pytest.raises(CannotSign, match="simulator"):
        sample_delivery("paypal", "test_1", secret="WH-1", options={}, now=NOW)
    with pytest.raises(CannotSign, match="public key"):
        sample_delivery("standard-webhooks", "t", secret="whpk_AA==", options={}, now=NOW)
