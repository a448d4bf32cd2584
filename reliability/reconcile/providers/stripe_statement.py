"""Lists a Stripe account's balance transactions of one span, as the format stripe-api-json reads."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from reliability.models import Source
from reliability.reconcile.providers import asking
from reliability.reconcile.providers.stripe_events import PAGE, client_of, listed, package


def pages(source: Source, since: datetime, until: datetime) -> Iterator[bytes]:
    """Yield one line per page: each transaction created within the span, once, newest first.

    Needs the source's API credential (a restricted key that may read balance transactions) and
    the extra ``stripe``. What is asked for reaches beyond both ends of the span, so that no row
    at an edge depends on how the provider compares times; a row listed twice counts once. The
    last line says that no more follow. Raises ``CannotFetch``.
    """
    page: list[dict[str, Any]] = []
    for one in _within(source, since, until):
        page.append(one)
        if len(page) == PAGE:
            yield _line(page, more=True)
            page = []
    yield _line(page, more=False)


def _within(source: Source, since: datetime, until: datetime) -> Iterator[dict[str, Any]]:
    stripe = package()
    ask = client_of(stripe, source).v1.balance_transactions.list
    span = {
        "gte": int((since - asking.OVERLAP).timestamp()),
        "lt": int((until + asking.OVERLAP).timestamp()),
    }
    seen: set[str] = set()
    for one in listed(stripe, ask, {"created": span, "expand": ["data.source"]}):
        inside = since.timestamp() <= one["created"] < until.timestamp()
        if inside and one["id"] not in seen:
            seen.add(one["id"])
            yield one


def _line(page: list[dict[str, Any]], *, more: bool) -> bytes:
    document = {"object": "list", "data": page, "has_more": more}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
