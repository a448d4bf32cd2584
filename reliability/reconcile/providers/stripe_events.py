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

PAGE = 100
RETRIES = 2


class CannotFetch(Exception):
    """The provider could not be asked, or said no; the text tells a person why."""


def events(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield the account's events of a span, newest first, through Stripe's own package.

    Needs the source's API credential (a restricted key that may read events is enough) and the
    extra ``stripe``. The option ``api_url`` names another address. Raises ``CannotFetch``.
    """
    package = _package()
    client = _client(package, source)
    span = {"created": {"gte": int(since.timestamp()), "lt": int(until.timestamp())}}
    try:
        for event in client.v1.events.list({**span, "limit": PAGE}).auto_paging_iter():
            yield Recorded(json.dumps(event.to_dict(), ensure_ascii=False).encode())
    except package.StripeError as error:
        raise CannotFetch(f"Stripe said: {error}") from None


def _package() -> ModuleType:
    try:
        return importlib.import_module("stripe")
    except ImportError:
        raise CannotFetch("install reliability[stripe] to ask Stripe for events") from None


def _client(package: ModuleType, source: Source) -> Any:
    credential = ApiCredential.objects.filter(source=source).first()
    if credential is None:
        raise CannotFetch(f"{source.slug} has no API credential: see `manage.py intake`")
    base = source.options.get("api_url")
    if base:
        check(base)
    time_out = conf().outbound_time.total_seconds()
    return package.StripeClient(
        credential.open(),
        stripe_account=source.account or None,
        base_addresses={"api": base} if base else {},
        max_network_retries=RETRIES,
        http_client=package.RequestsClient(timeout=time_out),
    )
