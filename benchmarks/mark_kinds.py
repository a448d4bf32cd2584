"""Two kinds whose downstream rejects nothing: our ledger marks the effect before it, or after."""

from datetime import timedelta
from typing import Any, Literal

from reliability import Backoff, DedupeWindow, Event, handler
from reliability.proof import provider_line

RECORDS: tuple[Literal["before"], Literal["after"]] = ("before", "after")
SOON = Backoff(first=timedelta(milliseconds=1), cap=timedelta(milliseconds=1), attempts=3)


def _pay(event: Event) -> Any:
    """Ask for one payment; the job's key names it for the counters."""

    def effect(key: str) -> str:
        asked = {"operation": event.key}
        return str(provider_line.post("/v1/payments", key=key, parameters=asked)["id"])

    return event.once("pay", effect)


for _record in RECORDS:
    _sink = DedupeWindow(window=timedelta(days=2), record=_record)
    handler(f"marks.{_record}", sink=_sink, policy=SOON)(_pay)
