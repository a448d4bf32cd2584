"""From an event to the operation it tells of: this charge, this refund."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Literal

from reliability.claim.body import JsonValue, pointer
from reliability.claim.signatures.clock import instant
from reliability.claim.signatures.identity import identity_key
from reliability.currencies import TABLES
from reliability.handlers import MappedOperation

AMOUNT_MINOR_MAX = 2**63 - 1

_CURRENCY = re.compile(r"[A-Za-z]{3}")
# 27 digits at most: Decimal would round from the 29th on.
_AMOUNT = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, kw_only=True)
class OperationRule:
    """Where one type of event says which operation it is.

    ``event_type`` is exact, or a prefix when it ends in ``.*``. Pointers are alternatives,
    the first that leads somewhere counts; ``batch`` leads to the payout or batch it belongs to. A rule holds only if every ``only_if`` value is
    there and no ``unless`` value is. Amounts are minor units, or major ones as text.
    """

    event_type: str
    operation_class: str
    reference: Sequence[str]
    amount: Sequence[str] = ()
    currency: Sequence[str] = ()
    occurred_at: Sequence[str] = ()
    batch: Sequence[str] = ()
    amount_unit: Literal["minor", "major"] = "minor"
    exponents: str = "iso"
    only_if: Sequence[tuple[str, JsonValue]] = ()
    unless: Sequence[tuple[str, JsonValue]] = ()


def read_rules(rows: Sequence[Mapping[str, object]]) -> tuple[OperationRule, ...]:
    """Read rules as a source stores them; ValueError names what is wrong with which rule."""
    return tuple(_rule(number, row) for number, row in enumerate(rows, 1))


def _rule(number: int, row: Mapping[str, object]) -> OperationRule:
    texts = {"event_type", "operation_class", "amount_unit", "exponents"}
    known = {field.name for field in fields(OperationRule)}
    wrong = [
        name
        for name, value in row.items()
        if name not in known or not isinstance(value, str if name in texts else list)
    ]
    missing = {"event_type", "operation_class", "reference"} - set(row)
    if wrong or missing:
        names = ", ".join(sorted({*wrong, *missing}))
        raise ValueError(
            f"operation rule {number}: unknown, missing or of a wrong type: {names}"
        )
    return OperationRule(**row)  # type: ignore[arg-type]


def map_operation(
    rules: Sequence[OperationRule], event_type: str, payload: JsonValue
) -> MappedOperation | None:
    """Find the operation of an event by the first rule that fits and finds a reference.

    ``None`` means this event tells of no operation: nothing else can absorb it. Amount,
    currency and exponent are ``None`` together where the event gives no amount that can be
    trusted to the last digit, as in a currency its provider does not list; the reference still
    claims the operation.
    """
    for rule in rules:
        if not _fits(rule, event_type, payload):
            continue
        reference = identity_key([_first(payload, rule.reference)])
        if isinstance(reference, str):
            return _operation(rule, reference, payload)
    return None


def _fits(rule: OperationRule, event_type: str, payload: JsonValue) -> bool:
    prefix = rule.event_type.removesuffix("*") if rule.event_type.endswith(".*") else None
    if not (event_type.startswith(prefix) if prefix else event_type == rule.event_type):
        return False
    return all(_holds(payload, condition) for condition in rule.only_if) and not any(
        _holds(payload, condition) for condition in rule.unless
    )


def _holds(payload: JsonValue, condition: tuple[str, JsonValue]) -> bool:
    path, wanted = condition
    found = pointer(payload, path)
    # 1 == True in Python, but not in JSON.
    return type(found) is type(wanted) and found == wanted


def _operation(rule: OperationRule, reference: str, payload: JsonValue) -> MappedOperation:
    occurred_at = instant(_first(payload, rule.occurred_at))
    currency = _currency(_first(payload, rule.currency))
    decimals = TABLES[rule.exponents].get(currency) if currency else None
    amount = _first(payload, rule.amount)
    minor = None if decimals is None else _minor(amount, rule.amount_unit, decimals)
    if minor is None:
        currency, decimals = None, None
    batch = identity_key([_first(payload, rule.batch)])
    return MappedOperation(
        operation_class=rule.operation_class,
        reference=reference,
        amount_minor=minor,
        currency=currency,
        exponent=decimals,
        occurred_at=occurred_at,
        batch=batch if isinstance(batch, str) else None,
    )


def _first(payload: JsonValue, paths: Sequence[str]) -> JsonValue:
    found = (pointer(payload, path) for path in paths)
    return next((value for value in found if value is not None), None)


def _currency(value: JsonValue) -> str | None:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        return None
    return value.upper()


def _minor(value: JsonValue, unit: str, decimals: int) -> int | None:
    """Read an amount as whole minor units; ``None`` rather than a rounded figure."""
    number = _number(value, unit)
    if number is None:
        return None
    scaled = number.scaleb(decimals) if unit == "major" else number
    if scaled != scaled.to_integral_value() or abs(scaled) > AMOUNT_MINOR_MAX:
        return None
    return int(scaled)


def _number(value: JsonValue, unit: str) -> Decimal | None:
    """Take digits only: a number as it is, and text where the provider writes major units."""
    written = isinstance(value, str) and unit == "major"
    counted = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not (written or counted) or not _AMOUNT.fullmatch(str(value)):
        return None
    return Decimal(str(value))
