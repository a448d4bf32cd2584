"""What the strict JSON loader takes, refuses, finds and cuts."""

import json
from decimal import Decimal

import pytest

from reliability.claim.body import (
    JsonValue,
    Unparseable,
    elements,
    load,
    member,
    pointer,
)


def test_whole_numbers_stay_exact_and_fractions_are_decimals() -> None:
    value = load(b'{"n": 123456789012345678901, "a": 123456789012345.678901, "z": [1.10]}')
    assert value == {
        "n": 123456789012345678901,
        "a": Decimal("123456789012345.678901"),
        "z": [Decimal("1.10")],
    }
    assert str(pointer(value, "/z/0")) == "1.10"


def test_an_amount_past_the_range_of_a_float_does_not_become_infinite() -> None:
    assert pointer(load(b'{"amount": 1e400}'), "/amount") == Decimal("1e400")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"id":"a"}{"id":"b"}', "not JSON"),
        (b'{"id":"a\x01"}', "not JSON"),
        (b'"evt"', "neither an object nor an array"),
        (b"null", "neither an object nor an array"),
        (b'{"id":"\xff"}', "not UTF-8"),
        (b'{"id":"\xed\xa0\x80"}', "not UTF-8"),
        ('{"id":"a"}'.encode("utf-16"), "not UTF-8"),
        (b'\xef\xbb\xbf{"id":"a"}', "starts with a byte order mark"),
        (b'{"id":"a","id":"b"}', "a name is given twice"),
        (b'{"o":{"id":"a","\\u0069d":"a"}}', "a name is given twice"),
        (b'{"n":NaN}', "NaN or Infinity"),
        (b'{"n":-Infinity}', "NaN or Infinity"),
        (b'{"n":' + b"9" * 1001 + b"}", "number out of bounds"),
        (b'{"n":0.' + b"9" * 1001 + b"}", "number out of bounds"),
        (b'{"n":1e200000}', "number out of bounds"),
        (b'{"n":1e-1001}', "number out of bounds"),
        (b'{"n":1e99999999999999999999}', "number out of bounds"),
        (b'{"a":"\\ud800"}', "lone surrogate"),
        (b'{"\\uDFFF":1}', "lone surrogate"),
        (b"[" * 101 + b"]" * 101, "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" + b"0," * 49_999 + b"0]", "too many values"),
        (b"[" + b"[]," * 30_000 + b"0]", "too many values"),
    ],
)
def test_a_body_that_readers_could_disagree_on_is_unparseable(raw: bytes, reason: str) -> None:
    with pytest.raises(Unparseable) as caught:
        load(raw)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100 + b"]" * 100,
        b"[" + b"0," * 49_998 + b"0]",
        b'{"a":"' + b"[{,}]" * 60_000 + b'"}',
        b'{"a":"' + b'[\\\\\\"[' * 200 + b'"}',
        b'{"a":"x\\u0000y"}',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"n":' + b"9" * 1000 + b"}",
        b' \r\n\t{"a" : [ ] } ',
    ],
)
def test_a_body_at_the_limits_is_read(raw: bytes) -> None:
    assert load(raw) == json.loads(raw)


def test_brackets_in_an_open_string_are_text_and_cost_one_pass() -> None:
    with pytest.raises(Unparseable) as caught:
        load(b'{"' + b'\\"[' * 200_000)
    assert caught.value.reason == "not JSON"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", {"a": {"b/c": [10, {"~": None}]}, "": 1, "0": "zero"}),
        ("/a/b~1c/0", 10),
        ("/a/b~1c/1/~0", None),
        ("/", 1),
        ("/0", "zero"),
        ("/a/b~1c/01", None),
        ("/a/b~1c/-", None),
        ("/a/b~1c/2", None),
        ("/a/b~1c/0/x", None),
        ("/missing/x", None),
        ("a", None),
    ],
)
def test_a_pointer_follows_rfc_6901(path: str, found: JsonValue) -> None:
    value = load(b'{"a": {"b/c": [10, {"~": null}]}, "": 1, "0": "zero"}')
    assert pointer(value, path) == found


def test_an_event_of_a_batch_keeps_its_own_bytes() -> None:
    raw = b'{"n": 1.0, "x": {"events": [0]}, "events" : [ {"id": "A",  "v":1.00} , [2,3],"\\u00e9" ] }'
    events = member(raw, "events")
    assert events is not None
    assert elements(events) == [b'{"id": "A",  "v":1.00}', b"[2,3]", b'"\\u00e9"']


def test_nothing_is_cut_where_the_shape_is_another() -> None:
    assert member(b"[1]", "events") is None
    assert member(b'{ "a" : {} }', "events") is None
    assert member(b"{}", "events") is None
    assert elements(b'{"a":[1]}') == []
    assert elements(b" [ ] ") == []
