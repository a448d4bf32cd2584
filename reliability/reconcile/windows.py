"""For how long each provider can still be asked for an object or event."""

from collections.abc import Mapping
from datetime import datetime, timedelta

#: docs.stripe.com/api/events (30 days); GitHub redelivers for 3 days
#: (docs.github.com/webhooks/testing-and-troubleshooting-webhooks); Square 28 days
#: (developer.squareup.com/docs/events-api); GoCardless keeps events 18 months.
WINDOWS: Mapping[str, timedelta] = {
    "stripe": timedelta(days=30),
    "github": timedelta(days=3),
    "square": timedelta(days=28),
    "gocardless": timedelta(days=548),
}


def recoverable_until(preset: str, occurred_at: datetime) -> datetime | None:
    """Return until when the provider itself can be asked; ``None``: it is built from the line."""
    window = WINDOWS.get(preset)
    return occurred_at + window if window else None
