"""Lists a Stripe account's events, which Stripe keeps for 30 days, as they would be delivered."""

import importlib
import json
from collections.abc import Iterator
from datetime import datetime
from types import ModuleType
from typing import Any

from reliability.claim.backlog import Recorded
from reliability.conf import conf
from reliability.models import ApiCredential, Source
from reliability.outbound import check
from reliability.reconcile.providers.provided import CannotFetch

PAGE = 100
RETRIES = 2

__all__ = ["CannotFetch", "client_of", "events", "package"]


def events(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield the account's events of a span, newest first, through Stripe's own package.

    Needs the source's API credential (a restricted key that may read events is enough) and the
    extra ``stripe``. The option ``api_url`` names another address. Raises ``CannotFetch``.
    """
    stripe = package()
    client = client_of(stripe, source)
    span = {"created": {"gte": int(since.timestamp()), "lt": int(until.timestamp())}}
    try:
        for event in client.v1.events.list({**span, "limit": PAGE}).auto_paging_iter():
            yield Recorded(json.dumps(event.to_dict(), ensure_ascii=False).encode())
    except stripe.StripeError as error:
        raise CannotFetch(f"Stripe said: {error}") from None


def package() -> ModuleType:
    """Import Stripe's own package. Raises ``CannotFetch`` where it is not installed."""
    try:
        return importlib.import_module("stripe")
    except ImportError:
        raise CannotFetch("install reliability[stripe] to ask Stripe for events") from None


def client_of(stripe: ModuleType, source: Source) -> Any:
    """Return a client with the source's credential. Raises ``CannotFetch`` where it has none."""
    credential = ApiCredential.objects.filter(source=source).first()
    if credential is None:
        raise CannotFetch(f"{source.slug} has no API credential: see `manage.py intake`")
    base = source.options.get("api_url")
    if base:
        check(base)
    time_out = conf().outbound_time.total_seconds()
    return stripe.StripeClient(
        credential.open(),
        stripe_account=source.account or None,
        base_addresses={"api": base} if base else {},
        max_network_retries=RETRIES,
        http_client=stripe.RequestsClient(timeout=time_out),
    )
