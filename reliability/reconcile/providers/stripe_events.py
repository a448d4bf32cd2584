"""Lists a Stripe account's events, which Stripe keeps for 30 days, as they would be delivered."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any

from reliability.claim.backlog import Recorded
from reliability.models import Source
from reliability.reconcile.providers import asking
from reliability.reconcile.providers.provided import CannotFetch

PAGE = 100
RETRIES = 2


def events(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield the account's events of a span, newest first, through Stripe's own package.

    Needs the source's API credential (a restricted key that may read events is enough) and the
    extra ``stripe``. Raises ``CannotFetch``.
    """
    yield from _recorded(source, _span(since, until))


def undelivered(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield those events of a span that some endpoint has not acknowledged; else as ``events``.

    ``delivery_success`` in docs.stripe.com/api/events/list.
    """
    yield from _recorded(source, {**_span(since, until), "delivery_success": False})


def _span(since: datetime, until: datetime) -> dict[str, Any]:
    return {"created": {"gte": int(since.timestamp()), "lt": int(until.timestamp())}}


def _recorded(source: Source, asked: Mapping[str, Any]) -> Iterator[Recorded]:
    stripe = package()
    client = client_of(stripe, source)
    for event in listed(stripe, client.v1.events.list, asked):
        yield Recorded(json.dumps(event, ensure_ascii=False).encode())


def listed(stripe: ModuleType, ask: Any, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each object of one of Stripe's lists, page by page. Raises ``CannotFetch``.

    The next page begins after the last object's id, so that what is added meanwhile moves no
    other object across the edge of a page.
    """
    params: dict[str, Any] = {**asked, "limit": PAGE}
    for _ in range(asking.PAGES_MAX):
        try:
            page = ask(params)
        except stripe.StripeError as error:
            raise refusal(stripe, error) from None
        yield from (one.to_dict() for one in page.data)
        if not page.has_more or not page.data:
            return
        params["starting_after"] = page.data[-1].id
    asking.too_many_pages("Stripe")


def refusal(stripe: ModuleType, error: Exception) -> CannotFetch:
    """Put an error of Stripe's package into words for a person."""
    match error:
        case stripe.RateLimitError():
            return asking.rate_limited("Stripe")
        case stripe.APIConnectionError():
            return asking.no_answer("Stripe", error)
    return CannotFetch(f"Stripe said: {error}")


def package() -> ModuleType:
    """Import Stripe's own package. Raises ``CannotFetch`` where it is not installed."""
    return asking.package("stripe", extra="stripe")


def client_of(stripe: ModuleType, source: Source) -> Any:
    """Return a client with the source's credential. Raises ``CannotFetch`` where it has none."""
    key, base = asking.credential_of(source), asking.own_address(source)
    return stripe.StripeClient(
        key,
        stripe_account=source.account or None,
        base_addresses={"api": base} if base else {},
        max_network_retries=RETRIES,
        http_client=stripe.RequestsClient(timeout=asking.seconds_max()),
    )
