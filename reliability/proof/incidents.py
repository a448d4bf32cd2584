"""What can happen on the day: each incident is one small true story told by its events."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from reliability.proof.cast import BILLING, SHOP, Fate, StoryEvent, StoryOperation, StorySource
from reliability.proof.invention import Customer, Invention, Price
from reliability.proof.stripe_objects import (
    Charge,
    Refund,
    charge_object,
    intent_object,
    invent_charge,
    refund_object,
    refunded_charge_object,
    stripe_event,
)

Movement = Charge | Refund


@dataclass(frozen=True)
class Incident:
    """Its events, and what of it stands on the provider's statement."""

    events: tuple[StoryEvent, ...]
    movements: tuple[Movement, ...] = ()


def charge(
    invention: Invention, *, customer: Customer | None = None, fate: Fate = Fate.DONE
) -> Incident:
    """One event tells of one charge."""
    made = invent_charge(invention, customer)
    told = stripe_event(
        invention, "charge.succeeded", charge_object(made), operation=made.operation, fate=fate
    )
    return Incident((told,), (made,))


def charge_told_twice(invention: Invention) -> Incident:
    """Two events tell of one charge: whichever comes second is absorbed."""
    made = invent_charge(invention)
    told = stripe_event(
        invention, "charge.succeeded", charge_object(made), operation=made.operation
    )
    again = stripe_event(
        invention, "payment_intent.succeeded", intent_object(made), operation=made.operation
    )
    return Incident((told, again), (made,))


def charge_with_partial_refunds(invention: Invention) -> Incident:
    """Two refunds of one charge are two operations; the first is told by two events."""
    made = charge(invention)
    (paid,) = made.movements
    assert isinstance(paid, Charge)
    first, second = _refund(invention, paid, 1), _refund(invention, paid, 2)
    told = [
        stripe_event(invention, event_type, facts, operation=refund.operation)
        for event_type, facts, refund in (
            ("charge.refunded", refunded_charge_object(first), first),
            ("refund.created", refund_object(first), first),
            ("refund.created", refund_object(second), second),
        )
    ]
    return Incident((*made.events, *told), (paid, first, second))


def customer_updated(invention: Invention) -> Incident:
    """An object that legitimately repeats its type: there is no operation."""
    person = invention.customer()
    told = {
        "id": person.id,
        "object": "customer",
        "created": int(invention.moment().timestamp()),
        "email": person.email,
        "name": person.name,
    }
    return Incident((stripe_event(invention, "customer.updated", told),))


def order_paid(invention: Invention, *, key: str = "") -> Incident:
    """A shop order to ship."""
    return _sale(invention, SHOP, "order.paid", key=key)


def express_order_paid(invention: Invention, *, fate: Fate = Fate.DONE) -> Incident:
    """A shop order whose courier is booked over a line of its own."""
    return _sale(invention, SHOP, "order.express_paid", fate=fate)


def stock_changed(invention: Invention) -> Incident:
    """A count that goes up and down: no operation, local work only."""
    facts: dict[str, object] = {
        "sku": invention.identifier("sku", 8),
        "left": invention.number(0, 400),
    }
    event = _event(invention, SHOP, "stock.changed", facts, told=_Told())
    return Incident((event,))


def invoice_issued(invention: Invention, *, key: str = "") -> Incident:
    """An invoice of our own billing to be posted."""
    return _sale(invention, BILLING, "invoice.issued", key=key)


def receipt_due(invention: Invention) -> Incident:
    """A receipt to be mailed once."""
    return _sale(invention, BILLING, "receipt.due")


def broken_event(invention: Invention) -> Incident:
    """A signed delivery whose body ends half way."""
    (whole,) = charge(invention, fate=Fate.BROKEN).events
    half = whole.body[: len(whole.body) // 2]
    return Incident((replace(whole, body=half, operation=None),))


# How often each happens among ordinary events.
ORDINARY: tuple[tuple[Callable[..., Incident], int, int], ...] = (
    # incident, events it takes, weight
    (charge, 1, 10),
    (charge_told_twice, 2, 6),
    (charge_with_partial_refunds, 4, 2),
    (customer_updated, 1, 3),
    (order_paid, 1, 9),
    (stock_changed, 1, 3),
    (invoice_issued, 1, 6),
    (receipt_due, 1, 3),
)


def _refund(invention: Invention, paid: Charge, nth: int) -> Refund:
    """Give back a third or less, an hour apart."""
    part = invention.number(1, paid.price.amount_minor // 3)
    return Refund(
        id=invention.identifier("re"),
        charge=paid,
        price=Price(part, paid.price.currency),
        at=paid.at + timedelta(minutes=25 * nth),
    )


@dataclass(frozen=True)
class _Told:
    """What an event says beyond its facts; without a key it gets one of its own."""

    key: str = ""
    operation: StoryOperation | None = None
    fate: Fate = Fate.DONE


def _sale(
    invention: Invention,
    source: StorySource,
    event_type: str,
    *,
    key: str = "",
    fate: Fate = Fate.DONE,
) -> Incident:
    noun = event_type.partition(".")[0]
    person, price = invention.customer(), invention.price()
    operation = StoryOperation(
        operation_class=noun,
        reference=invention.identifier(noun, 12),
        amount_minor=price.amount_minor,
        currency=price.currency,
        occurred_at=invention.moment(),
    )
    facts: dict[str, object] = {
        f"{noun}_id": operation.reference,
        "amount_minor": price.amount_minor,
        "currency": price.currency,
        "customer": person.id,
        "email": person.email,
    }
    told = _Told(key, operation, fate)
    return Incident((_event(invention, source, event_type, facts, told=told),))


def _event(
    invention: Invention,
    source: StorySource,
    event_type: str,
    facts: dict[str, object],
    *,
    told: _Told,
) -> StoryEvent:
    key = told.key or invention.identifier("msg" if source is SHOP else "bil")
    at = told.operation.occurred_at if told.operation else invention.moment()
    body = {"id": key, "type": event_type, "timestamp": at.isoformat(), "data": facts}
    return StoryEvent(
        source=source.name,
        scheme=source.scheme,
        key=key,
        event_type=event_type,
        body=json.dumps(body, separators=(",", ":")).encode(),
        headers={"Content-Type": "application/json", "User-Agent": f"{source.name}/3"},
        operation=told.operation,
        customer=str(facts.get("customer", "")),
        fate=told.fate,
    )
