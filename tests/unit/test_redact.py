"""What viewers may not see is found by shape and by name; the rest stays byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliability.console.payload import DEPTH_MAX, SHOWN_CHARACTERS_MAX, shown
from reliability.console.redact import hidden_by_name, hide


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # Numbers the schemes publish for tests; each fulfils its check digits.
        ("card 4242424242424242.", "card [redacted: card]."),
        ("card 4242-4242-4242-4242", "card [redacted: card]"),
        ("amex 378282246310005", "amex [redacted: card]"),
        ("to DE89370400440532013000 today", "to [redacted: account] today"),
        ("to DE89 3704 0044 0532 0130 00 AND MORE", "to [redacted: account] AND MORE"),
        ("GB82 WEST 1234 5698 7654 32", "[redacted: account]"),
        ("from jo.b+x@shop.example.com!", "from [redacted: e-mail]!"),
        ("key sk_live_51H8abcdefghijk", "key [redacted: token]"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: [redacted: token]"),
        ("jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln", "jwt [redacted: token]"),
    ],
)
def test_what_is_shaped_like_a_secret_is_hidden(text: str, told: str) -> None:
    assert hide(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424241",  # the check digit is wrong
        "1791888838", "2026-10-14 09:42:15", "evt_3QJ8vKLm2eZvKYlo1kPq7Rtx",
        "DE89370400440532013001",  # the check digits are wrong
        "user@host", "2418906", "0.1234567890123456789",
        "3f0c6a52-9d4e-4b1f-8a77-1f2e3d4c5b6a",
    ],
)  # fmt: skip
def test_what_only_looks_a_little_like_one_is_shown(text: str) -> None:
    assert hide(text) == text


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("email", "e-mail"), ("receipt_email", "e-mail"), ("customerEmail", "e-mail"),
        ("name", "name"), ("first_name", "name"), ("client_secret", "secret"),
        ("access-token", "secret"), ("postal_code", "address"), ("cvc", "secret"),
        ("amount", ""), ("currency", ""), ("id", ""), ("kind", ""), ("event_name", ""),
    ],
)  # fmt: skip
def test_a_field_is_hidden_by_its_name(name: str, what: str) -> None:
    assert hidden_by_name(name) == what


@given(st.text(alphabet=st.sampled_from("ab 0123456789@.-DE"), max_size=60))
def test_hiding_twice_hides_no_more(text: str) -> None:
    once = hide(text)
    assert hide(once) == once


def _text(raw: bytes, *, redacted: bool = False) -> str:
    return "".join(token.text for token in shown(raw, redacted=redacted).tokens)


def test_json_is_laid_out_with_numbers_and_repeated_names_as_written() -> None:
    raw = b'{"a":1.50,"a":[],"b":{"c":null,"d":[true,1e5]},"e":12345678901234567890}'
    assert _text(raw) == (
        '{\n  "a": 1.50,\n  "a": [],\n  "b": {\n    "c": null,\n    "d": [\n      true,\n'
        '      1e5\n    ]\n  },\n  "e": 12345678901234567890\n}'
    )


def test_what_is_no_json_is_shown_as_it_came() -> None:
    assert _text(b"a=1&b=<script>\xff") == "a=1&b=<script>\\xff"


def test_a_hidden_field_hides_everything_below_it() -> None:
    told = _text(b'{"name": {"given": "Jo"}, "amount": 5}', redacted=True)
    assert told == '{\n  "name": redacted: name,\n  "amount": 5\n}'


def test_a_card_number_written_as_a_number_is_hidden() -> None:
    assert "4242" not in _text(b'{"n": 4242424242424242}', redacted=True)


def test_a_name_that_holds_an_address_is_hidden_too() -> None:
    assert "jo@" not in _text(b'{"jo@customer.example": 1}', redacted=True)


def test_characters_that_turn_the_text_around_are_shown_as_escapes() -> None:
    assert _text("gpj.\u202eexe".encode()) == "gpj.\\u202eexe"


def test_a_huge_body_is_cut_after_it_was_redacted() -> None:
    raw = b"x" * (SHOWN_CHARACTERS_MAX - 8) + b" 4242424242424242"
    told = shown(raw, redacted=True)
    assert told.cut
    assert "4242" not in "".join(token.text for token in told.tokens)


@pytest.mark.parametrize("depth", [DEPTH_MAX + 5, 100_000])
def test_a_body_too_deep_to_lay_out_is_shown_as_it_came(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth
    assert _text(raw).startswith("[[[")


def test_a_list_under_a_hidden_name_is_hidden() -> None:
    assert "Jo" not in _text(b'{"name": ["Jo", "Al"]}', redacted=True)
