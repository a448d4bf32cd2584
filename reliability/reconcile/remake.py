"""An event built anew from a statement line, in the shape its provider would have sent."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from reliability.claim.accept import Asked
from reliability.claim.body import load
from reliability.claim.door import Door
from reliability.claim.operations import OperationRule, map_operation
from reliability.currencies import money
from reliability.handlers import MappedOperation, find
from reliability.models import Discrepancy, Job, StatementLine
from reliability.reconcile.scope import OUTGOING

KEY_BYTES_MAX = 255
GOCARDLESS_OBJECT = OperationRule(
    event_type="", operation_class="", reference=["/id"], amount=["/amount"],
    currency=["/currency"],
)  # fmt: skip
"""A payment, refund or payout as developer.gocardless.com/api-reference shows it."""
STRIPE_OBJECTS = {
    "charge": "charge",
    "refund": "refund",
    "payout": "payout",
    "dispute": "dispute",
}


@dataclass(frozen=True)
class Unmade:
    """No event can be built, and why."""

    why: str


def event_from(
    discrepancy: Discrepancy,
    line: StatementLine,
    entry: Door,
    *,
    provided: Mapping[str, Any] | None = None,
) -> Asked | Unmade:
    """Build what asks to be taken in: under the line's operation, with a key of our own.

    ``provided`` is the provider's object, which must say what the line says; without it the
    body is built from the line. The kind is the first of the class's event types that has a
    handler or a route here.
    """
    rule = _rule(entry, discrepancy.operation_class)
    if rule is None:
        return Unmade(
            f"No event type of {entry.source.slug} tells of a {discrepancy.operation_class}; "
            "give the source an operation rule, or resolve it by hand."
        )
    routed = entry.source.routes.get(rule.event_type)
    kind = routed or f"{entry.scheme.name}.{rule.event_type}"
    if find(kind) is None and not routed:
        return Unmade(f"Nothing here handles {kind}: recovering would have no effect.")
    operation = _operation(discrepancy, line)
    body = _body(rule, operation, line, entry)
    if provided is not None:
        said = _put_in(body, provided, rule, entry)
        if why := _contradiction(said, operation):
            return Unmade(why)
    return _asked(kind, operation, body, key=recovery_key(discrepancy.reference))


def _asked(
    kind: str, operation: MappedOperation, body: Mapping[str, Any], *, key: str
) -> Asked:
    declared = find(kind)
    return Asked(
        key=key,
        kind=kind,
        body=json.dumps(body, ensure_ascii=False, default=str).encode(),
        queue=declared.queue if declared else "outside",
        operation=operation,
        occurred_at=operation.occurred_at,
        headers={"content-type": "application/json"},
        held=Job.Hold.NONE if declared else Job.Hold.KIND_UNKNOWN,
        asked_by="recover",
    )


def _put_in(
    body: dict[str, Any], provided: Mapping[str, Any], rule: OperationRule, entry: Door
) -> MappedOperation | None:
    """Put the provider's object where its events carry it, and return what it says."""
    if entry.scheme.name == "gocardless":
        # Their events only link to an object: its own fields are looked at by name.
        body["recovered"]["object"] = dict(provided)
        rule, told = GOCARDLESS_OBJECT, dict(provided)
    else:
        body["data"] = {"object": dict(provided)}
        told = body
    return map_operation([rule], rule.event_type, load(json.dumps(told).encode()))


def _contradiction(said: MappedOperation | None, line: MappedOperation) -> str:
    """Say where the provider's object and the statement's line differ, or nothing."""
    if said is None or said.reference != line.reference:
        return f"The provider’s object does not tell of {line.reference}."
    if (said.amount_minor, said.currency) == (line.amount_minor, line.currency):
        return ""
    theirs, listed = (
        money(one.amount_minor or 0, one.currency or "", one.exponent or 0)
        for one in (said, line)
    )
    return f"The provider’s object says {theirs}, the line {listed}: nothing was taken in."


def recovery_key(reference: str) -> str:
    """Return the event key of a recovery; a reference too long for one is hashed."""
    key = f"recovered:{reference}"
    if len(key.encode()) <= KEY_BYTES_MAX:
        return key
    return f"recovered:sha256:{hashlib.sha256(reference.encode()).hexdigest()}"


def _rule(entry: Door, operation_class: str) -> OperationRule | None:
    """Choose the event type to stand in for the one that never came."""
    chosen = entry.source.statement_options.get("recover_as", {}).get(operation_class)
    rules = [
        rule
        for rule in entry.operations
        if rule.operation_class == operation_class
        and chosen in (None, rule.event_type)
        and not rule.event_type.endswith("*")
    ]
    handled = [rule for rule in rules if _is_handled(entry, rule)]
    return next(iter(handled or rules), None)


def _is_handled(entry: Door, rule: OperationRule) -> bool:
    kind = f"{entry.scheme.name}.{rule.event_type}"
    return rule.event_type in entry.source.routes or find(kind) is not None


def _operation(discrepancy: Discrepancy, line: StatementLine) -> MappedOperation:
    """Name the operation as an event would: an outgoing amount carries no sign there."""
    # Of a group told in several lines this is their sum.
    minor = line.amount_minor if discrepancy.their_minor is None else discrepancy.their_minor
    outgoing = minor < 0 and discrepancy.operation_class in OUTGOING
    return MappedOperation(
        operation_class=discrepancy.operation_class,
        reference=discrepancy.reference,
        amount_minor=-minor if outgoing else minor,
        currency=line.currency,
        exponent=line.exponent,
        occurred_at=_occurred_at(line),
    )


def _occurred_at(line: StatementLine) -> datetime:
    """Return when it happened; of a line with a day only, that day's noon at the provider."""
    known = line.occurred_at or line.booked_at
    if known:
        return known
    statement = line.statement
    day = line.occurred_day or line.booked_day or statement.day
    zone = ZoneInfo(statement.source.zone)
    return datetime.combine(day, time(12), zone).astimezone(UTC)


def _body(
    rule: OperationRule, operation: MappedOperation, line: StatementLine, entry: Door
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": recovery_key(operation.reference),
        "type": rule.event_type,
        "recovered": {
            "statement": str(line.statement.public_id),
            "line": line.position,
            "provider_id": line.provider_id,
        },
    }
    if entry.scheme.name == "stripe":
        _as_stripe(body, operation, line)
    if entry.scheme.name == "gocardless":
        kind, _, action = rule.event_type.partition(".")
        body |= {"resource_type": kind, "action": action}
    at = operation.occurred_at or datetime.now(UTC)
    _put(body, rule.reference[:1], operation.reference)
    _put(body, rule.amount, _amount(rule, operation))
    _put(body, rule.currency, (operation.currency or "").lower())
    _put(body, rule.occurred_at, _time(rule, at))
    for pointer, value in rule.only_if:
        _put(body, [pointer], value)
    return body


def _as_stripe(body: dict[str, Any], operation: MappedOperation, line: StatementLine) -> None:
    """Add what handlers of Stripe's events look at; docs.stripe.com/api/events/object."""
    created = int(operation.occurred_at.timestamp()) if operation.occurred_at else None
    found = {
        name: line.references[name]
        for name in ("charge", "payment_intent", "balance_transaction")
        if name in line.references and line.references[name] != operation.reference
    }
    body |= {"object": "event", "created": created}
    body["data"] = {
        "object": {
            "object": STRIPE_OBJECTS.get(operation.operation_class, operation.operation_class),
            "created": created,
            "status": "succeeded",
            **found,
        }
    }


def _amount(rule: OperationRule, operation: MappedOperation) -> int | str | None:
    minor = operation.amount_minor
    if minor is None or rule.amount_unit == "minor":
        return minor
    return f"{Decimal(minor).scaleb(-(operation.exponent or 0)):f}"


def _time(rule: OperationRule, at: datetime) -> int | str:
    """Write a time as the provider does: Stripe counts seconds, the others write ISO 8601."""
    return int(at.timestamp()) if rule.exponents == "stripe" else at.isoformat()


def _put(body: dict[str, Any], pointers: Sequence[str], value: object) -> None:
    """Set each pointer's place (RFC 6901, names only); a path through a list is left out."""
    for pointer in pointers:
        *path, last = pointer.lstrip("/").split("/")
        if any(part.isdigit() for part in (*path, last)):
            continue
        place = body
        for part in path:
            deeper = place.setdefault(part, {})
            if not isinstance(deeper, dict):
                break
            place = deeper
        else:
            place[last] = value
