"""Who plays in the story: tenants, sources, kinds, and what an event and its delivery are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType


class Effect(StrEnum):
    """Where a kind's work shows: at the fake provider, in a mail, in our own tables."""

    HTTP = "http"
    MAIL = "mail"
    LOCAL = "local"


class Fate(StrEnum):
    """How an event ends by the plan; an operation's events share one."""

    DONE = "done"
    FAILS = "fails"  # its handler fails for this customer
    OUTAGE = "outage"  # its downstream is down
    BROKEN = "broken"  # signed, but no JSON


@dataclass(frozen=True, kw_only=True)
class StorySource:
    """A provider account that sends us events; `operations` are rules beyond its preset's.

    Each rule holds the fields of an operation rule: event type, class, pointers, unit.
    """

    name: str
    tenant: str
    tenant_name: str
    scheme: str
    zone: str = "UTC"
    operations: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, kw_only=True)
class StoryKind:
    """What the handler of one kind does; `path` is where at the fake provider."""

    effect: Effect
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class StoryOperation:
    """What an event tells was done to the world; `amount_minor` in the currency's own unit."""

    operation_class: str
    reference: str
    amount_minor: int
    currency: str
    occurred_at: datetime


@dataclass(frozen=True, kw_only=True)
class StoryEvent:
    """One message of a provider; `headers` lack the signature, which depends on the hour."""

    source: str
    scheme: str
    key: str
    event_type: str
    body: bytes
    headers: Mapping[str, str]
    operation: StoryOperation | None
    customer: str = ""
    fate: Fate = Fate.DONE

    @property
    def kind(self) -> str:
        return f"{self.scheme}.{self.event_type}"

    @property
    def work(self) -> object:
        """What is done once: the operation if it tells of one, else the event itself."""
        operation = self.operation
        mark = (operation.operation_class, operation.reference) if operation else (self.key,)
        return (self.source, *mark)


@dataclass(frozen=True, kw_only=True)
class StoryDelivery:
    """One request to send; a reformatted body says the same in other bytes."""

    event: StoryEvent
    body: bytes
    reformatted: bool = False


def _rule(event_type: str, operation_class: str, reference: str) -> Mapping[str, object]:
    return MappingProxyType(
        {
            "event_type": event_type,
            "operation_class": operation_class,
            "reference": (reference,),
            "amount": ("/data/amount_minor",),
            "currency": ("/data/currency",),
            "occurred_at": ("/timestamp",),
            "amount_unit": "minor",
        }
    )


STRIPE = StorySource(
    name="acme-stripe", tenant="acme", tenant_name="Acme Payments", scheme="stripe"
)
SHOP = StorySource(
    name="borealis-shop",
    tenant="borealis",
    tenant_name="Borealis Shop",
    scheme="standard-webhooks",
    operations=(
        _rule("order.paid", "order", "/data/order_id"),
        _rule("order.express_paid", "order", "/data/order_id"),
    ),
)
BILLING = StorySource(
    name="acme-billing",
    tenant="acme",
    tenant_name="Acme Payments",
    scheme="generic-hmac",
    operations=(
        _rule("invoice.issued", "invoice", "/data/invoice_id"),
        _rule("receipt.due", "receipt", "/data/receipt_id"),
    ),
)
SOURCES = (STRIPE, SHOP, BILLING)
OUTAGE_PATH = "/v1/couriers"

KINDS: Mapping[str, StoryKind] = MappingProxyType(
    {
        "stripe.charge.succeeded": StoryKind(effect=Effect.HTTP, path="/v1/credits"),
        "stripe.payment_intent.succeeded": StoryKind(effect=Effect.HTTP, path="/v1/credits"),
        "stripe.charge.refunded": StoryKind(effect=Effect.HTTP, path="/v1/reversals"),
        "stripe.refund.created": StoryKind(effect=Effect.HTTP, path="/v1/reversals"),
        "stripe.customer.updated": StoryKind(effect=Effect.LOCAL),
        "standard-webhooks.order.paid": StoryKind(effect=Effect.HTTP, path="/v1/shipments"),
        "standard-webhooks.order.express_paid": StoryKind(
            effect=Effect.HTTP, path=OUTAGE_PATH
        ),
        "standard-webhooks.stock.changed": StoryKind(effect=Effect.LOCAL),
        "generic-hmac.invoice.issued": StoryKind(effect=Effect.HTTP, path="/v1/postings"),
        "generic-hmac.receipt.due": StoryKind(effect=Effect.MAIL),
    }
)
