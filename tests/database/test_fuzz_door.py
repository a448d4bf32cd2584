"""Whatever is sent to the door, it answers with one of its own statuses and logs no error.

`python benchmarks/fuzz_door.py` runs this with 100 000 cases.
"""

import json
import os
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reliability.claim.presets import PRESETS
from reliability.models import Source
from tests.database import senders
from tests.database.live import Web, head, status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(0)]

CASES = int(os.environ.get("FUZZ_CASES", "2000"))
# The table of answers, and what the server itself says to broken HTTP.
ANSWERS = {200, 202, 401, 404, 405, 411, 413, 415, 498, 503} | {400, 417, 431, 501}

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=40),
    st.sampled_from(["evt_1", "\x00", "\ud800", "é", "e\u0301", "x" * 300, "1e400"]),
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["id", "type", "account", "data", "object", "events", "created",
                     "notificationItems", "NotificationRequestItem", "pspReference",
                     "eventCode", "amount", "value", "currency", "additionalData",
                     "hmacSignature", "resource_type", "action", "event_type", "links"]),
    st.text(max_size=10),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=15,
)
BODIES = st.one_of(
    st.binary(max_size=300),
    VALUES.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.lists(VALUES, max_size=5).map(lambda some: json.dumps({"events": some}).encode()),
    st.sampled_from([b"", b"[" * 5_000, b'{"id":1' + b"0" * 5_000 + b"}", b"\xef\xbb\xbf{}",
                     b'{"id":"a","id":"b"}', b'{"id":"evt_1","type":"charge.succeeded"}']),
)  # fmt: skip
HEADER_NAMES = st.sampled_from(
    ["Stripe-Signature", "webhook-id", "webhook-timestamp", "webhook-signature", "svix-id",
     "X-Hub-Signature-256", "X-GitHub-Event", "X-GitHub-Delivery", "X-Signature",
     "Webhook-Signature", "X-Shopify-Hmac-Sha256", "X-Shopify-Event-Id", "X-Shopify-Topic",
     "Paypal-Cert-Url", "Paypal-Transmission-Id", "Paypal-Transmission-Time",
     "Paypal-Transmission-Sig", "Paypal-Auth-Algo", "Content-Type", "Content-Encoding",
     "Content-Length", "Transfer-Encoding", "X_Hub_Signature_256", "Cookie", "Expect"],
)  # fmt: skip
HEADER_VALUES = st.one_of(
    st.binary(max_size=60).filter(lambda value: not set(value) & {10, 13}),
    st.sampled_from([b"", b"t=1,v1=00", b"v1,AAAA", b"sha256=", b"sha256=" + b"0" * 64, b"0", b"1",
                     b"gzip", b"identity", b"chunked", b"100-continue",
                     b"https://api.paypal.com@evil.example/", b"multipart/form-data; boundary=x"]),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    scheme: str
    body: bytes
    signed: bool
    altered: bool
    headers: dict[str, bytes]
    method: str
    path: str


CASES_OF = st.builds(
    Case,
    scheme=st.sampled_from(sorted(PRESETS)),
    body=BODIES,
    signed=st.booleans(),
    altered=st.booleans(),
    headers=st.dictionaries(HEADER_NAMES, HEADER_VALUES, max_size=4),
    method=st.sampled_from(["POST"] * 12 + ["GET", "PUT", "HEAD", "ODD"]),
    path=st.sampled_from(["/hooks/{}/"] * 12 + ["/hooks/{}", "/hooks/x{}/", "/hooks/{}//"]),
)


@pytest.fixture
def sources() -> dict[str, Source]:
    return {name: senders.source(name) for name in PRESETS}


@settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=CASES_OF)
def test_any_request_gets_an_answer_of_the_table(
    web: Web, sources: dict[str, Source], case: Case
) -> None:
    answer = web.send(request(case, sources[case.scheme].endpoint_token), seconds=5)
    assert status(answer) in ANSWERS, answer[:200]


def test_the_server_logged_no_error_meanwhile(web: Web) -> None:
    web.assert_quiet()


def request(case: Case, token: str) -> bytes:
    signed: dict[str, str | bytes] = (
        {**senders.sign(case.scheme, case.body)} if case.signed else {}
    )
    headers = bounded(
        {**signed, **(case.headers if case.altered or not case.signed else {})}, case
    )
    return head(case.method, case.path.format(token), case.body, headers) + case.body


def bounded(headers: dict[str, str | bytes], case: Case) -> dict[str, str | bytes]:
    """Keep a length from promising more than comes: waiting for it is another test's matter."""
    length = headers.get("Content-Length")
    promised = length.strip() if isinstance(length, bytes) else b""
    if promised.isdigit() and int(promised) > len(case.body):
        headers["Content-Length"] = b"99999999999"
    return headers
