"""What comes once the days are settled, so that there is something for people to do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from reliability.proof import incidents
from reliability.proof.cast import StoryDelivery, StoryEvent
from reliability.proof.invention import FAILING_CUSTOMER, Invention
from reliability.proof.stripe_objects import stripe_event

FROZEN_INVOICES, STUCK_INVOICES, STUCK_ORDERS = 6, 12, 8
WARNINGS, CUSTOMERS, LEADS, STOCK_MOVES = 6, 3, 3, 6
OPENED_CUSTOMER, EDITED = "cus_Rh2mVd8LsYtQcA", "/data/object/customer"
"""Whose charge an edit makes it, and where that stands in the body."""
OUTAGE_PATHS = ("/v1/postings", "/v1/shipments", "/v1/warehouse")
"""Lines that are down while the afternoon is sent."""
CRM, WAREHOUSE = "borealis-crm", "borealis-warehouse"
"""Sources whose events are only sent on."""


class Afternoon:
    """The events of one seed; those of the sources that are sent on stand apart."""

    def __init__(self, seed: int, day: date) -> None:
        self._invention = Invention(f"{seed} afternoon", day)

    def deliveries(self) -> list[StoryDelivery]:
        """Return invoices and orders that die, warnings nobody handles, customers of a pause."""
        invention = self._invention
        invoices = [incidents.invoice_issued(invention) for _ in range(STUCK_INVOICES)]
        orders = [incidents.order_paid(invention) for _ in range(STUCK_ORDERS)]
        people = [incidents.customer_updated(invention) for _ in range(CUSTOMERS)]
        told = [event for one in (*invoices, *orders, *people) for event in one.events]
        told += [self._frozen_invoice() for _ in range(FROZEN_INVOICES)]
        told += [self._warning() for _ in range(WARNINGS)]
        return delivered(told)

    def sent_on(self) -> list[StoryDelivery]:
        """Return leads for the CRM and moves for the warehouse."""
        leads = [self._plain(CRM, "lead.won") for _ in range(LEADS)]
        moves = [self._plain(WAREHOUSE, "stock.moved") for _ in range(STOCK_MOVES)]
        return delivered([*leads, *moves])

    def _frozen_invoice(self) -> StoryEvent:
        (event,) = incidents.invoice_issued(self._invention).events
        facts = json.loads(event.body)
        facts["data"]["customer"] = FAILING_CUSTOMER
        return replace(event, body=json.dumps(facts).encode(), customer=FAILING_CUSTOMER)

    def _warning(self) -> StoryEvent:
        """A type of event that the provider has added and nobody has a handler for."""
        told = {
            "id": self._invention.identifier("issfr"),
            "object": "radar.early_fraud_warning",
            "charge": self._invention.identifier("ch"),
            "created": int(self._invention.moment().timestamp()),
        }
        return stripe_event(self._invention, "radar.early_fraud_warning.created", told)

    def _plain(self, source: str, event_type: str) -> StoryEvent:
        key = self._invention.identifier("out")
        facts = {"id": key, "type": event_type, "operation": f"{source} {key}"}
        return StoryEvent(
            source=source, scheme="generic-hmac", key=key, event_type=event_type,
            body=json.dumps(facts).encode(), headers={"Content-Type": "application/json"},
            operation=None,
        )  # fmt: skip


def delivered(events: Sequence[StoryEvent]) -> list[StoryDelivery]:
    """Send each once, as it is."""
    return [StoryDelivery(event=event, body=event.body) for event in events]


def account_opened(body: bytes) -> bytes:
    """Rewrite an event of the frozen customer for another one, as a person would edit it."""
    return body.replace(FAILING_CUSTOMER.encode(), OPENED_CUSTOMER.encode())
