"""What a route's id names: how one object of each noun is built for a source."""

from collections.abc import Callable
from typing import Any

from reliability.models import Source
from tests.console import rows

OBJECTS: dict[str, Callable[[Source], Any]] = {
    "alert-channels": rows.channel,
    "alert-rules": rows.alert_rule,
    "alerts": rows.silence,
    "dead-letters": rows.letter,
    "destinations": rows.destination,
    "discrepancies": rows.discrepancy,
    "files": rows.artefact,
    "ignore-rules": rows.ignore_rule,
    "redrives": rows.redrive,
    "sources": lambda source: source,
    "reports": lambda source: rows.report(source, "absent"),
    "saved-views": rows.saved_view,
    "statements": rows.statement,
}
"""By the first word of the route; a new kind of object is added here, or its routes are not tried."""


def address_of(route: str, public_id: object) -> str:
    """Return where a route leads for one object."""
    head, _, tail = route.partition("<uuid:public_id>")
    there = f"/{head}{public_id}{tail}" if "<uuid:" in route else f"/{route}"
    return there.replace("<slug:tenant>", "acme").replace("<path:where>", "you/")
