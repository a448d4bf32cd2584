"""Stripe's charge, payment intent, refund and event, as their webhooks carry them."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reliability.proof.cast import STRIPE, Fate, StoryEvent, StoryOperation
from reliability.proof.invention import Customer, Invention, Price

Facts = dict[str, Any]
API_VERSION = "2024-06-20"
HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Stripe/1.0"}


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A charge that took money; its refunds hold its id."""

    id: str
    payment_intent: str
    customer: Customer
    price: Price
    at: datetime

    @property
    def operation(self) -> StoryOperation:
        return _operation("charge", self.id, self.price, self.at)


@dataclass(frozen=True, kw_only=True)
class Refund:
    """A full or partial refund of a charge, an operation of its own."""

    id: str
    charge: Charge
    price: Price
    at: datetime

    @property
    def operation(self) -> StoryOperation:
        return _operation("refund", self.id, self.price, self.at)


def invent_charge(invention: Invention, customer: Customer | None = None) -> Charge:
    """Draw a charge of the day."""
    return Charge(
        id=invention.identifier("ch"),
        payment_intent=invention.identifier("pi"),
        customer=customer or invention.customer(),
        price=invention.price(),
        at=invention.moment(),
    )


def charge_object(charge: Charge) -> Facts:
    """Write a captured charge as the API shows it."""
    return {
        "id": charge.id,
        "object": "charge",
        "amount": charge.price.amount_minor,
        "amount_captured": charge.price.amount_minor,
        "amount_refunded": 0,
        "billing_details": {"email": charge.customer.email, "name": charge.customer.name},
        "captured": True,
        "created": int(charge.at.timestamp()),
        "currency": charge.price.currency.lower(),
        "customer": charge.customer.id,
        "livemode": True,
        "paid": True,
        "payment_intent": charge.payment_intent,
        "payment_method_details": {"card": {"brand": "visa", "last4": "4242"}, "type": "card"},
        "refunded": False,
        "status": "succeeded",
    }


def intent_object(charge: Charge) -> Facts:
    """Write the payment intent that led to a charge."""
    return {
        "id": charge.payment_intent,
        "object": "payment_intent",
        "amount": charge.price.amount_minor,
        "amount_received": charge.price.amount_minor,
        "capture_method": "automatic",
        "created": int(charge.at.timestamp()) - 4,
        "currency": charge.price.currency.lower(),
        "customer": charge.customer.id,
        "latest_charge": charge.id,
        "livemode": True,
        "status": "succeeded",
    }


def refund_object(refund: Refund) -> Facts:
    """Write one refund."""
    return {
        "id": refund.id,
        "object": "refund",
        "amount": refund.price.amount_minor,
        "charge": refund.charge.id,
        "created": int(refund.at.timestamp()),
        "currency": refund.price.currency.lower(),
        "payment_intent": refund.charge.payment_intent,
        "reason": "requested_by_customer",
        "status": "succeeded",
    }


def refunded_charge_object(refund: Refund) -> Facts:
    """Write a charge whose first refund this is, with that refund as the newest."""
    whole = refund.price.amount_minor == refund.charge.price.amount_minor
    return charge_object(refund.charge) | {
        "amount_refunded": refund.price.amount_minor,
        "refunded": whole,
        "refunds": {"object": "list", "data": [refund_object(refund)], "has_more": False},
    }


def stripe_event(
    invention: Invention,
    event_type: str,
    told: Facts,
    *,
    operation: StoryOperation | None = None,
    fate: Fate = Fate.DONE,
) -> StoryEvent:
    """Wrap an object into the event that tells of it, under an id of its own."""
    key = invention.identifier("evt")
    at = int(operation.occurred_at.timestamp()) if operation else told["created"]
    facts = {
        "id": key,
        "object": "event",
        "api_version": API_VERSION,
        "created": at + 1,
        "data": {"object": told},
        "livemode": True,
        "pending_webhooks": 2,
        "request": {"id": invention.identifier("req", 14), "idempotency_key": None},
        "type": event_type,
    }
    return StoryEvent(
        source=STRIPE.name,
        scheme=STRIPE.scheme,
        key=key,
        event_type=event_type,
        # Stripe sends its events indented.
        body=json.dumps(facts, indent=2).encode(),
        headers=HEADERS,
        operation=operation,
        customer=told.get("customer") or "",
        fate=fate,
    )


def _operation(
    operation_class: str, reference: str, price: Price, at: datetime
) -> StoryOperation:
    return StoryOperation(
        operation_class=operation_class,
        reference=reference,
        amount_minor=price.amount_minor,
        currency=price.currency,
        occurred_at=at,
    )
