"""Asks a Stripe account for one object, as its event would have carried it."""

from collections.abc import Callable, Mapping
from typing import Any

from reliability.models import Source
from reliability.reconcile.providers.provided import Fetched, Gone
from reliability.reconcile.providers.stripe_events import client_of, package, refusal

READERS: Mapping[str, Callable[[Any], Any]] = {
    "charge": lambda api: api.charges,
    "refund": lambda api: api.refunds,
    "payout": lambda api: api.payouts,
    "dispute": lambda api: api.disputes,
}
MISSING = "resource_missing"


def fetch(source: Source, operation_class: str, reference: str) -> Fetched | Gone:
    """Retrieve a charge, refund, payout or dispute through Stripe's own package.

    Raises ``CannotFetch`` where Stripe could not be asked, or refused the credential.
    """
    reader = READERS.get(operation_class)
    if reader is None:
        return Gone(f"Stripe has no object for a {operation_class}")
    stripe = package()
    try:
        found = reader(client_of(stripe, source).v1).retrieve(reference)
    except stripe.InvalidRequestError as error:
        if error.code == MISSING:
            return Gone(f"Stripe no longer knows {reference}")
        raise refusal(stripe, error) from None
    except stripe.StripeError as error:
        raise refusal(stripe, error) from None
    return Fetched(found.to_dict())
