"""Each kind's limits in words: its worst case, its window, its sink, and what is at risk."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from reliability.checks import pace_of, too_short
from reliability.conf import conf
from reliability.handlers import (
    DedupeWindow,
    Kind,
    LocalTransaction,
    ProviderHeader,
    UniqueConstraint,
    lacks_sink,
)
from reliability.policy import BACKGROUND, USER_FACING, Backoff, Pace, Policy, worst_case

SECONDS_ALONE_MAX = 120


def terms(policy: Policy, pace: Pace) -> dict[str, timedelta]:
    """Return S with its four terms, each an upper bound."""
    worst = worst_case(policy, pace)
    return {
        "waits": worst.waits,
        "work": worst.work,
        "crashes": worst.crashes,
        "pickups": worst.pickups,
        "S": worst.total,
    }


def shipped_pace() -> Pace:
    """Return the times around a kind that declares no limit of its own."""
    return pace_of(Kind(name="", handle=print, sink=None, policy=None), conf())


def ways_of(kind: Kind) -> dict[str, Policy]:
    """Return the kind's policy by how an event comes in: one under no name where it declares it."""
    if kind.policy is not None:
        return {"": kind.policy}
    return {"webhook": BACKGROUND, "enqueued": USER_FACING}


def rows_of(kind: Kind) -> Iterator[dict[str, Any]]:
    """Yield one row for a kind; two where it leaves its policy to how the event came in."""
    for way, policy in ways_of(kind).items():
        yield _row(kind, policy, f"{kind.name} ({way})" if way else kind.name)


def _row(kind: Kind, policy: Policy, name: str) -> dict[str, Any]:
    return {
        "kind": name,
        "attempts": policy.attempts,
        **terms(policy, pace_of(kind, conf())),
        "window": kind.window,
        "sink": sink_in_words(kind),
        "risk": risk_in_words(kind, policy),
    }


def sink_in_words(kind: Kind) -> str:
    """Name what downstream rejects a repeat."""
    match kind.sink:
        case LocalTransaction():
            return "local transaction"
        case UniqueConstraint(model, field):
            return f"unique {model}.{field}"
        case ProviderHeader(header, _):
            return f"header {header}"
        case DedupeWindow(record=record):
            return f"own ledger, record {record}"
        case None:
            return "none"


def risk_in_words(kind: Kind, policy: Policy) -> str:
    """Say what may go wrong with an effect of this kind, in the words that matter."""
    if lacks_sink(kind) or too_short(kind):
        lack = "a sink (E010)" if kind.sink is None else "a window as long as S (E011)"
        return f"refused: it has retries and lacks {lack}"
    if not isinstance(policy, Backoff):
        return "may be missing: runs once, then a person decides"
    return _risk_of_retries(kind)


def _risk_of_retries(kind: Kind) -> str:
    match kind.sink:
        case DedupeWindow(record="before"):
            return "may be missing"
        case DedupeWindow():
            return "may repeat"
        case ProviderHeader():
            return "none within its window"
        case _:
            return "none: the database refuses a repeat"


def in_words(span: timedelta) -> str:
    """Write a duration as people do: 91.5 s up to two minutes, then 7 min 15 s, 3 h 12 min, …"""
    seconds = round(span.total_seconds(), 3)
    if seconds <= SECONDS_ALONE_MAX:
        return f"{seconds:g} s"
    left = round(seconds)
    told = []
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if count := left // size:
            told.append(f"{count} {name}")
        left %= size
    return " ".join(told[:2])
