"""When an event tells of an operation, and how exact its amount is."""

from dataclasses import replace

import pytest

from reliability.claim.body import load
from reliability.claim.operations import OperationRule, map_operation

RULE = OperationRule(
    event_type="pay.*",
    operation_class="pay",
    reference=["/ref"],
    amount=["/a"],
    currency=["/c"],
    amount_unit="major",
)


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        ('"12.30"', '"EUR"', 1230),
        ("12.30", '"eur"', 1230),
        ("12", '"KWD"', 12_000),
        ('"-0.01"', '"EUR"', -1),
        ('"999999999999999999.99"', '"EUR"', None),
        ('"12.345"', '"EUR"', None),
        ('"12.50"', '"JPY"', None),
        ('"1e3"', '"EUR"', None),
        ("1e3", '"EUR"', None),
        ('"12,30"', '"EUR"', None),
        ('" 12"', '"EUR"', None),
        ('"١٢"', '"EUR"', None),
        ("true", '"EUR"', None),
        ("null", '"EUR"', None),
        ('"1"', '"EURO"', None),
        ('"1"', '"ſſſ"', None),
        ('"1"', "978", None),
    ],
)
def test_an_amount_is_exact_or_absent_and_never_rounded(
    amount: str, currency: str, minor: int | None
) -> None:
    mapped = map_operation(
        [RULE], "pay.in", load(f'{{"ref":"r","a":{amount},"c":{currency}}}'.encode())
    )
    assert mapped is not None
    assert mapped.amount_minor == minor
    assert (mapped.currency is None) == (mapped.exponent is None) == (minor is None)


def test_a_text_is_no_count_of_minor_units() -> None:
    rule = replace(RULE, amount_unit="minor")
    mapped = map_operation([rule], "pay.in", {"ref": "r", "a": "1100", "c": "EUR"})
    assert mapped is not None
    assert mapped.amount_minor is None


@pytest.mark.parametrize("event_type", ["pay", "payx", "paid.in"])
def test_a_prefix_ends_at_its_dot(event_type: str) -> None:
    assert map_operation([RULE], event_type, {"ref": "r"}) is None


@pytest.mark.parametrize("reference", [None, "", "a\n", 1.5, True, "r" * 256, ["r"]])
def test_a_reference_that_cannot_be_a_key_is_no_operation(reference: object) -> None:
    assert map_operation([RULE], "pay.in", {"ref": reference}) is None  # type: ignore[dict-item]
