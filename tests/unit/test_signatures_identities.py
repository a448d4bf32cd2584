"""How each scheme names its events, and what may be a name."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from reliability.claim.signatures import (
    SCHEMES,
    Found,
    Identity,
    Unreadable,
    identities,
    identity_key,
    key_error,
)


def named(
    scheme: str,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Found:
    return identities(scheme, body=body, headers=headers or {}, options=options or {})


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (["evt_1"], "evt_1"),
        ([" evt_1 "], " evt_1 "),
        (["e\u0301"], "e\u0301"),
        (["<script>"], "<script>"),
        ([42], "42"),
        (["a", "b"], '["a","b"]'),
        (['a","b'], 'a","b'),
        (['a"', "é", 7], '["a\\"","é","7"]'),
        (["k" * 255], "k" * 255),
    ],
)
def test_a_key_is_what_the_producer_wrote(parts: list[object], key: str) -> None:
    assert identity_key(parts) == key


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [""],
        [None],
        [True],
        [1.5],
        [["a"]],
        ["a", None],
        ["a", ""],
        ["k" * 256],
        ["é" * 128],
        ["a" * 200, "b" * 60],
        ["a\x00"],
        ["a\r\nX: 1"],
        ["a\x7f"],
        ["a\x85"],
        ["a", "b\x1b"],
        ["\ud800"],
    ],
)
def test_anything_else_is_no_key(parts: list[object]) -> None:
    refused = identity_key(parts)
    assert isinstance(refused, Unreadable)
    assert refused.fault == "unidentified"


def test_the_reason_names_the_rule() -> None:
    assert key_error("") == "empty"
    assert key_error("x" * 256) == "longer than 255 bytes"
    assert key_error("x\n") == "holds a control character"
    assert key_error("\ud800") == "not UTF-8"
    assert key_error("x") is None


STANDARD = {"webhook-id": "msg_1"}
GITHUB = {"X-GitHub-Delivery": "72d3-1", "X-GitHub-Event": "push"}
SHOPIFY = {"X-Shopify-Event-Id": "e-1", "X-Shopify-Topic": "orders/paid"}
GENERIC = {"id_pointer": "/event/0/id", "type_header": "X-Kind", "time_pointer": "/at"}
ADYEN_ITEM = b'{"pspReference":"P","eventCode":"REFUND","success":"true"}'
NINE = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("scheme", "body", "headers", "options", "identity"),
    [
        (
            "stripe",
            b'{"id":"evt_1","type":"charge.succeeded","created":1796029200}',
            {},
            {},
            Identity("evt_1", "charge.succeeded", NINE),
        ),
        (
            "stripe",
            b'{"id":"evt_1","account":"acct_1","type":"charge.succeeded"}',
            {},
            {},
            Identity('["acct_1","evt_1"]', "charge.succeeded"),
        ),
        ("stripe", b'{"id":"evt_1","account":null,"type":7}', {}, {}, Identity("evt_1", "")),
        ("stripe", b'{"id":"evt_1","created":true}', {}, {}, Identity("evt_1", "")),
        ("stripe", b'{"id":"evt_1","created":1e9}', {}, {}, Identity("evt_1", "")),
        (
            "stripe",
            b'{"id":"evt_1","created":99999999999999999}',
            {},
            {},
            Identity("evt_1", ""),
        ),
        (
            "standard-webhooks",
            b'{"id":"other","type":"a.b","timestamp":"2026-11-30T10:00:00+01:00"}',
            STANDARD,
            {},
            Identity("msg_1", "a.b", NINE),
        ),
        ("standard-webhooks", b"{}", {"svix-id": "msg_2"}, {}, Identity("msg_2", "")),
        ("github", b'{"ref":"main"}', GITHUB, {}, Identity("72d3-1", "push")),
        (
            "github",
            b"payload=%7B%22a%22%3A%22%C3%A9+b%22%7D",
            GITHUB | {"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
            {},
            Identity("72d3-1", "push", None, b'{"a":"\xc3\xa9 b"}'),
        ),
        ("shopify", b"{}", SHOPIFY, {}, Identity("e-1", "orders/paid")),
        (
            "shopify",
            b"{}",
            {
                "Shopify-Event-Id": "e-2",
                "Shopify-Topic": "x",
                "Shopify-Triggered-At": "2026-11-30T09:00:00.000000Z",
            },
            {},
            Identity("e-2", "x", NINE),
        ),
        (
            "generic-hmac",
            b'{"event":[{"id":12}],"at":"2026-11-30T09:00:00Z"}',
            {"x-kind": "paid"},
            GENERIC,
            Identity("12", "paid", NINE),
        ),
        (
            "paypal",
            b'{"id":"WH-1","event_type":"A.B","create_time":"2026-11-30T09:00:00Z"}',
            {},
            {},
            Identity("WH-1", "A.B", NINE),
        ),
        (
            "gocardless",
            b'{"events":[{"id":"EV1","resource_type":"payments","action":"paid_out"}]}',
            {},
            {},
            Identity(
                "EV1",
                "payments.paid_out",
                None,
                b'{"id":"EV1","resource_type":"payments","action":"paid_out"}',
            ),
        ),
        (
            "adyen",
            b'{"notificationItems":[{"NotificationRequestItem":%s}]}' % ADYEN_ITEM,
            {},
            {},
            Identity(
                '["P","REFUND","true"]',
                "REFUND",
                None,
                ADYEN_ITEM,
            ),
        ),
    ],
)
def test_a_scheme_names_its_event(
    scheme: str,
    body: bytes,
    headers: Mapping[str, str],
    options: Mapping[str, object],
    identity: Identity,
) -> None:
    assert named(scheme, body, headers, options) == [identity]


def test_a_batch_names_each_event_once_with_its_own_bytes() -> None:
    body = b'{"events": [{"id":"E1","n":1.0}, {"id":"E2"} ,{"id":"E1","n":2}]}'
    found = named("gocardless", body)
    assert isinstance(found, list)
    assert [(one.key, one.payload) for one in found if isinstance(one, Identity)] == [
        ("E1", b'{"id":"E1","n":1.0}'),
        ("E2", b'{"id":"E2"}'),
    ]


@pytest.mark.parametrize("nameless", [b'{"no":"id"}', b'"text"', b'{"id":""}'])
def test_an_event_without_identity_leaves_the_others_of_its_batch_their_names(
    nameless: bytes,
) -> None:
    found = named("gocardless", b'{"events":[{"id":"E1"},' + nameless + b',{"id":"E2"}]}')
    assert isinstance(found, list)
    first, lost, last = found
    assert isinstance(first, Identity)
    assert isinstance(lost, Unreadable)
    assert isinstance(last, Identity)
    assert (first.key, lost.payload, last.key) == ("E1", nameless, "E2")


def test_an_item_without_identity_leaves_the_others_of_its_batch_their_names() -> None:
    item = b'{"NotificationRequestItem":{"pspReference":"P","eventCode":"C","success":"true"}}'
    body = b'{"notificationItems":[{"NotificationRequestItem":{}},' + item + b"]}"
    found = named("adyen", body)
    assert isinstance(found, list)
    assert [one.payload for one in found] == [b"{}", item[27:-1]]
    assert [isinstance(one, Unreadable) for one in found] == [True, False]


def test_a_batch_holds_at_most_250_events() -> None:
    def events(count: int) -> bytes:
        return b'{"events":[' + b",".join(b'{"id":"E%d"}' % n for n in range(count)) + b"]}"

    full = named("gocardless", events(250))
    assert isinstance(full, list)
    assert len(full) == 250
    assert isinstance(named("gocardless", events(251)), Unreadable)


@pytest.mark.parametrize(
    ("scheme", "body", "headers"),
    [
        ("stripe", b'{"id":null}', {}),
        ("stripe", b"[]", {}),
        ("stripe", b'{"id":{"a":1}}', {}),
        ("stripe", b'{"id":"evt\\r\\nX: 1"}', {}),
        ("stripe", b'{"id":"evt_1","account":true}', {}),
        ("stripe", b'{"id":"%s"}' % (b"e" * 4000), {}),
        ("standard-webhooks", b"{}", {}),
        ("standard-webhooks", b"{}", {"webhook-id": "a", "svix-id": "b"}),
        ("github", b"{}", {}),
        ("github", b"{}", {"X-GitHub-Delivery": "a,b"}),
        ("shopify", b"{}", {"X-Shopify-Webhook-Id": "w"}),
        ("generic-hmac", b"{}", {"X-Kind": "t"}),
        ("paypal", b'{"event_type":"A"}', {}),
        ("gocardless", b'{"events":[]}', {}),
        ("gocardless", b'{"events":{"id":"E1"}}', {}),
        ("gocardless", b"{}", {}),
        ("adyen", b'{"notificationItems":[]}', {}),
        ("morse", b"{}", {}),
    ],
)
def test_an_event_without_identity_says_so(
    scheme: str, body: bytes, headers: Mapping[str, str]
) -> None:
    found = named(scheme, body, headers, GENERIC)
    assert isinstance(found, Unreadable)
    assert found.fault == "unidentified"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("body", [b"", b"{", b'{"id":"\xff"}', b'{"id":"a","id":"b"}'])
def test_an_unparseable_body_says_so_even_where_a_header_names_it(
    scheme: str, body: bytes
) -> None:
    found = named(scheme, body, STANDARD | GITHUB | SHOPIFY, GENERIC)
    assert isinstance(found, Unreadable)
    assert found.fault == "unparseable"


@pytest.mark.parametrize("body", [b"payload=\xff", b"a=1&" * 11, b"other=%7B%7D", b""])
def test_a_github_form_without_its_payload_is_unparseable(body: bytes) -> None:
    form = GITHUB | {"Content-Type": "application/x-www-form-urlencoded"}
    found = named("github", body, form)
    assert isinstance(found, Unreadable)
    assert found.fault == "unparseable"


def test_an_identity_outside_the_signature_is_known_as_such() -> None:
    unsigned = {
        name
        for name, scheme in SCHEMES.items()
        if not scheme.identity_is_signed({"id_header": "X"})
    }
    assert unsigned == {"github", "shopify", "generic-hmac"}
    assert SCHEMES["generic-hmac"].identity_is_signed({"id_pointer": "/id"})
    assert [name for name, scheme in SCHEMES.items() if not scheme.body_is_bound] == ["paypal"]
