"""Asks a GoCardless account for its events, kept for 18 months, and for one payment or refund."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from reliability.claim.backlog import Recorded
from reliability.models import Source
from reliability.reconcile.providers import asking
from reliability.reconcile.providers.provided import CannotFetch, Fetched, Gone

PAGE = 500
RETRIES = 2
PAUSE_SECONDS = 0.2
ENVIRONMENTS = {Source.Mode.LIVE: "live", Source.Mode.TEST: "sandbox"}
READERS: Mapping[str, Callable[[Any], Any]] = {
    "charge": lambda api: api.payments,
    "dispute": lambda api: api.payments,
    "refund": lambda api: api.refunds,
    "payout": lambda api: api.payouts,
}
LOST = frozenset({"404", "410"})


def events(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield the account's events of a span, newest first, through GoCardless's own package.

    Needs the source's API credential (a read-only access token is enough) and the extra
    ``gocardless``. Each page begins at a cursor, not at a time: events of one instant on both
    sides of an edge are all listed. Raises ``CannotFetch``.
    """
    sdk = _package()
    service = _patient(_client(sdk, source).events)
    asked = {
        "created_at[gte]": _instant(since),
        "created_at[lt]": _instant(until),
        "limit": PAGE,
    }
    for _ in range(asking.PAGES_MAX):
        with _in_words(sdk):
            page = service.list(params=asked)
        yield from map(_recorded, page.records)
        if not page.after:
            return
        asked["after"] = page.after
    asking.too_many_pages("GoCardless")


def fetch(source: Source, operation_class: str, reference: str) -> Fetched | Gone:
    """Retrieve a payment, refund or payout. Raises ``CannotFetch``."""
    reader = READERS.get(operation_class)
    if reader is None:
        return Gone(f"GoCardless has no object for a {operation_class}")
    sdk = _package()
    service = _patient(reader(_client(sdk, source)))
    try:
        with _in_words(sdk):
            return Fetched(service.get(reference).attributes)
    except _Lost:
        return Gone(f"GoCardless no longer knows {reference}")


class _Lost(Exception):
    """There is no such object, or no longer."""


@contextmanager
def _in_words(sdk: ModuleType) -> Iterator[None]:
    """Put the package's errors into words; of an answer that is no JSON only its status."""
    try:
        yield
    except sdk.errors.RateLimitError:
        raise asking.rate_limited("GoCardless") from None
    except sdk.errors.MalformedResponseError as error:
        raise CannotFetch(
            f"GoCardless answered {error.status_code}, not in JSON: fetch again later"
        ) from None
    except sdk.errors.ApiError as error:
        if str(error.code) in LOST:
            raise _Lost from None
        raise CannotFetch(f"GoCardless said: {error}") from None
    except sdk.errors.GoCardlessProError as error:
        raise CannotFetch(f"GoCardless said: {error}") from None
    except OSError as error:
        raise asking.no_answer("GoCardless", error) from None


def _package() -> ModuleType:
    return asking.package("gocardless_pro", extra="gocardless")


def _client(sdk: ModuleType, source: Source) -> Any:
    token, base = asking.credential_of(source), asking.own_address(source)
    return sdk.Client(
        access_token=token,
        environment=None if base else ENVIRONMENTS[Source.Mode(source.mode)],
        base_url=base,
        timeout=asking.seconds_max(),
    )


def _patient(service: Any) -> Any:
    service.max_network_retries = RETRIES
    service.retry_delay_in_seconds = PAUSE_SECONDS
    return service


def _recorded(event: Any) -> Recorded:
    """Wrap one event as a delivery of its own."""
    body = json.dumps({"events": [event.attributes]}, ensure_ascii=False)
    return Recorded(body.encode())


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
