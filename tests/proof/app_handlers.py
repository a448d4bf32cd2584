"""Handlers as a host project has them: two that stay in the database, one that reaches outside."""

from reliability import BACKGROUND, Event, LocalTransaction, ProviderHeader, handler


@handler("stripe.customer.updated", sink=LocalTransaction(), policy=BACKGROUND)
def follow_customer(event: Event) -> str:
    return str(event.payload["id"])


@handler("standard-webhooks.stock.changed", sink=LocalTransaction(), policy=BACKGROUND)
def follow_stock(event: Event) -> str:
    return str(event.payload["id"])


@handler("stripe.payout.paid", sink=ProviderHeader())
def tell_bank(event: Event) -> None:
    raise ConnectionRefusedError(event.key)
