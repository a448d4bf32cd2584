"""Requests to the door, made up: bodies, headers, signatures, methods and paths of all schemes."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from reliability.claim.operations import OperationRule
from reliability.claim.presets import PRESETS
from tests.database import senders
from tests.database.live import head

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
# What stands where a provider says which operation it tells of, for how much and when.
PLAUSIBLE = st.sampled_from(["ch_1", "EUR", "JPY", 1250, "12.50", 1_796_000_000])
FACTS = st.one_of(
    PLAUSIBLE,
    SCALARS,
    st.sampled_from(["ch_2", "EUR", "jpy", "XAU", "12.34", "-0.005", "9" * 30, "1e999", "",
                     "2026-03-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01", 0,
                     2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 1e300, 253402300800]),
)  # fmt: skip
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
                     b"gzip", b"identity", b"chunked", b"100-continue", b"a/b; charset*=x''%00",
                     b"https://api.paypal.com@evil.example/", b"multipart/form-data; boundary=x"]),
)  # fmt: skip
KINDS = {"shopify": "order_transactions/create", "github": "push"}
SIGNED_TEXT = st.text(st.characters(exclude_characters=":", codec="utf-8"), max_size=20)


@dataclass(frozen=True)
class Case:
    scheme: str
    body: bytes
    signed: bool
    bent: int | None
    """Which character of each header's value is another, once it is signed. Of all but the
    address of a certificate: that would be fetched."""
    headers: dict[str, bytes]
    method: str
    path: str

    @property
    def is_genuine(self) -> bool:
        """Tell whether the door has to take it in. Adyen signs no body that is not its own."""
        plain = self.method == "POST" and self.path in {"/hooks/{}/", "/hooks/{}"}
        untouched = self.signed and self.bent is None and not self.headers
        return plain and untouched and self.scheme != "adyen"


def request(case: Case, token: str) -> bytes:
    """Write the request, freshly signed where it is to be."""
    kind = KINDS.get(case.scheme, "test")
    signed = senders.sign(case.scheme, case.body, kind=kind) if case.signed else {}
    headers = bounded({**bent(signed, case.bent), **case.headers}, case)
    return head(case.method, case.path.format(token), case.body, headers) + case.body


def bent(signed: dict[str, str], at: int | None) -> dict[str, str | bytes]:
    if at is None:
        return {**signed}
    return {
        name: value
        if name == "Paypal-Cert-Url"
        else value[: at % len(value)] + "A" + value[at % len(value) + 1 :]
        for name, value in signed.items()
    }


def bounded(headers: dict[str, str | bytes], case: Case) -> dict[str, str | bytes]:
    """Keep a length from promising more than comes: waiting for it is another test's matter."""
    length = headers.get("Content-Length")
    promised = length.strip() if isinstance(length, bytes) else b""
    if promised.isdigit() and int(promised) > len(case.body):
        headers["Content-Length"] = b"99999999999"
    return headers


def told(rule: OperationRule) -> st.SearchStrategy[dict[str, Any]]:
    """Build payloads in which the rule finds something at each of its places."""
    places = [path for paths in (rule.reference, rule.amount, rule.currency, rule.occurred_at)
              for path in paths[:1]]  # fmt: skip
    given = {path: st.just(value) for path, value in rule.only_if}
    return st.fixed_dictionaries(dict.fromkeys(places, FACTS) | given).map(nested)


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """Put each value where its pointer leads, through objects and lists."""
    whole: dict[str, Any] = {}
    for path, value in values.items():
        *way, last = path.strip("/").split("/")
        here: Any = whole
        for step, following in zip(way, [*way[1:], last], strict=False):
            if following == "0":
                here = here.setdefault(step, [{}])[0]
            elif step != "0":
                here = here.setdefault(step, {})
        if last != "0" and isinstance(here, dict):
            here[last] = value
    return whole


def named(scheme: str, rule: OperationRule, payload: dict[str, Any], key: Any) -> bytes:
    """Give a payload its id and type as its provider does."""
    resource, _, action = rule.event_type.partition(".")
    match scheme:
        case "stripe":
            whole: Any = payload | {"id": key, "type": rule.event_type}
        case "paypal":
            whole = payload | {"id": key, "event_type": rule.event_type}
        case "gocardless":
            one = payload | {"id": key, "resource_type": resource, "action": action}
            whole = {"events": [one, {}, one | {"id": f"{key}!"}]}
        case _:
            whole = payload
    return json.dumps(whole).encode()


def item(rule: OperationRule, texts: tuple[str, ...], amount: int, more: Any) -> bytes:
    """Sign one of Adyen's items; what is not signed of it is as made up as can be."""
    reference, original, account, merchants, currency = texts
    return senders.adyen(
        {"pspReference": reference, "originalReference": original, "success": "true",
         "merchantAccountCode": account, "merchantReference": merchants, "eventDate": more,
         "amount": {"value": amount, "currency": currency}, "eventCode": rule.event_type}
    )  # fmt: skip


def bodies(scheme: str) -> st.SearchStrategy[bytes]:
    """Make bodies of a scheme: anything, and what its rules draw an operation from."""
    rules = PRESETS[scheme].operations
    if not rules:
        return BODIES
    if scheme == "adyen":
        texts = st.tuples(*[SIGNED_TEXT] * 5)
        items = st.builds(item, st.sampled_from(rules), texts, st.integers(), FACTS)
        return BODIES | items | items
    payloads = st.sampled_from(rules).flatmap(
        lambda rule: st.builds(named, st.just(scheme), st.just(rule), told(rule), FACTS)
    )
    return BODIES | payloads | payloads


def cases_of(scheme: str) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        scheme=st.just(scheme),
        body=bodies(scheme),
        signed=st.sampled_from([True, True, False]),
        bent=st.none() | st.integers(0, 400),
        headers=st.just({}) | st.dictionaries(HEADER_NAMES, HEADER_VALUES, max_size=4),
        method=st.sampled_from(["POST"] * 12 + ["GET", "PUT", "HEAD", "ODD"]),
        path=st.sampled_from(
            ["/hooks/{}/"] * 12
            + ["/hooks/{}", "/hooks/x{}/", "/hooks/{}//", "/hooks/{}%00/", "/hooks/%FF{}"]
        ),
    )


CASES = st.sampled_from(sorted(PRESETS)).flatmap(cases_of)
