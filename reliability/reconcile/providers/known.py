"""Which providers can be asked for what, by the scheme of a source."""

from collections.abc import Mapping
from types import MappingProxyType

from reliability.reconcile.providers import (
    github_deliveries,
    gocardless_api,
    stripe_events,
    stripe_objects,
)
from reliability.reconcile.providers.provided import FetchObject, ListEvents

EVENTS: Mapping[str, ListEvents] = MappingProxyType(
    {
        "stripe": stripe_events.events,
        "gocardless": gocardless_api.events,
        "github": github_deliveries.events,
    }
)
OBJECTS: Mapping[str, FetchObject] = MappingProxyType(
    {"stripe": stripe_objects.fetch, "gocardless": gocardless_api.fetch}
)
