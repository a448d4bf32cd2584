"""When an event tells of an operation, and how exact its amount is."""

from dataclasses import replace

import pytest

from reliability.claim.body import JsonValue, load
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


@pytest.mark.parametrize(("flag", "told"), [("true", True), ("1", False), ("null", False)])
def test_a_condition_tells_true_from_one(flag: str, told: bool) -> None:  # noqa: FBT001
    payload = load(f'{{"ref":"r","flag":{flag}}}'.encode())
    only_if = replace(RULE, only_if=[("/flag", True)])
    unless = replace(RULE, unless=[("/flag", True)])
    assert (map_operation([only_if], "pay.in", payload) is not None) is told
    assert (map_operation([unless], "pay.in", payload) is None) is told


def test_the_first_rule_that_finds_a_reference_counts() -> None:
    blind = replace(RULE, operation_class="blind", reference=["/nowhere"])
    second = replace(RULE, operation_class="second")
    mapped = map_operation([blind, second, RULE], "pay.in", {"ref": "r"})
    assert mapped is not None
    assert mapped.operation_class == "second"


def test_an_operation_names_the_batch_it_is_settled_with_where_the_event_does() -> None:
    rule = replace(RULE, batch=["/settled/in", "/batch"])
    payloads: list[JsonValue] = [
        {"ref": "r", "batch": "po_1"},
        {"ref": "r"},
        {"ref": "r", "batch": ""},
    ]
    found = [map_operation([rule], "pay.in", payload) for payload in payloads]
    batches = [mapped.batch for mapped in found if mapped is not None]
    assert batches == ["po_1", None, None]
