"""Every published or derived vector of the eight schemes gets its verdict; public test data."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reliability.claim.body import Unparseable, load
from reliability.claim.signatures import (
    SCHEMES,
    Refused,
    Verified,
    configuration_error,
    identities,
    verify,
)

DATA = Path(__file__).parents[3] / "shared" / "data" / "webhooks"
OURS = {
    "stripe-v1": "stripe",
    "standard-webhooks-v1": "standard-webhooks",
    "standard-webhooks-v1a": "standard-webhooks",
    "github-sha256": "github",
    "generic-hmac": "generic-hmac",
    "adyen-notification-item": "adyen",
    # The platform's webhooks sign the whole body, which the generic scheme can say.
    "adyen-body": "generic-hmac",
    "gocardless-hmac": "gocardless",
    "paypal-rsa-sha256": "paypal",
    "shopify-hmac-sha256": "shopify",
}
PLATFORM = {"header": "HmacSignature", "encoding": "base64", "secret_encoding": "hex"}


def read(name: str) -> Any:
    path = DATA / name
    return json.loads(path.read_text()) if path.exists() else []


VECTORS = [
    v for v in (read("vectors.json") or {"vectors": []})["vectors"] if v["scheme"] in OURS
]
HOSTILE = [h for h in read("hostile.json") if "unparseable" in h["expect"]]

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="public sample data is not here")


def test_every_scheme_has_vectors() -> None:
    assert {OURS[vector["scheme"]] for vector in VECTORS} == set(SCHEMES)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_a_vector_gets_its_verdict(vector: dict[str, Any]) -> None:
    scheme, secrets, options = setup(vector)
    verdict = verify(
        scheme,
        body=body_of(vector),
        headers=vector["request"]["headers"],
        secrets=secrets,
        url="https://example.test/hooks/token/",
        now=datetime.fromtimestamp(vector.get("now", 1_700_000_000), UTC),
        options=options,
    )
    match vector["expect"]:
        case "accept" | "accept-by-local-check":
            assert isinstance(verdict, Verified)
        case "accept-signature-reject-json":
            assert isinstance(verdict, Verified)
            with pytest.raises(Unparseable):
                load(body_of(vector))
        case "reject":
            assert isinstance(verdict, Refused)
        case "config-error":
            assert isinstance(verdict, Refused)
            assert configuration_error(scheme, secrets=secrets, options=options)
        case other:
            pytest.fail(other)


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if "event_ids" in v], ids=lambda v: v["id"]
)
def test_a_vector_names_its_events(vector: dict[str, Any]) -> None:
    scheme, _, options = setup(vector)
    found = identities(
        scheme, body=body_of(vector), headers=vector["request"]["headers"], options=options
    )
    assert isinstance(found, list)
    assert [identity.key for identity in found] == vector["event_ids"]


@pytest.mark.parametrize("case", HOSTILE, ids=lambda h: h["id"])
def test_a_hostile_body_is_unparseable(case: dict[str, Any]) -> None:
    with pytest.raises(Unparseable):
        load(built(case["build"]))


def built(recipe: str) -> bytes:
    """Carry out the few recipes the file is written in."""
    recipes = {
        "b'['*100000+b']'*100000": b"[" * 100_000 + b"]" * 100_000,
        'b\'{"id":"evt_1","a":"\\xff"}\'': b'{"id":"evt_1","a":"\xff"}',
        "'{\"id\":\"evt_1\"}'.encode('utf-16')": '{"id":"evt_1"}'.encode("utf-16"),
    }
    if "(5000 digits)" in recipe:
        return b'{"id":"evt_1","n":' + b"9" * 5000 + b"}"
    return recipes.get(recipe) or recipe.encode()


def body_of(vector: dict[str, Any]) -> bytes:
    request = vector["request"]
    if "body_base64" in request:
        return base64.b64decode(request["body_base64"])
    text: str = request["body_text"]
    return text.encode()


def setup(vector: dict[str, Any]) -> tuple[str, list[str], Mapping[str, object]]:
    """Say in our options what a vector says in its own words."""
    scheme, secrets = OURS[vector["scheme"]], list(vector["secrets"])
    options: dict[str, object] = {"tolerance_seconds": vector.get("tolerance", 300)}
    if scheme == "generic-hmac":
        options |= {"id_pointer": "/id"} | vector.get("config", PLATFORM)
    if any(secret.startswith("hex:") for secret in secrets):
        secrets = [secret.removeprefix("hex:") for secret in secrets]
        options["secret_encoding"] = "hex"
    if scheme == "paypal":
        secrets = [vector["webhook_id"]]
        options |= certificates(vector)
    return scheme, secrets, options


def certificates(vector: dict[str, Any]) -> dict[str, object]:
    leaf = (DATA / vector["cert_file"]).read_bytes()
    *between, root = [(DATA / name).read_bytes() for name in vector["cert_chain"]]
    url = vector["request"]["headers"]["Paypal-Cert-Url"]
    return {"certificates": {url: leaf + b"".join(between)}, "roots": root}
