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


def rows_of(kind: Kind) -> Iterator[dict[str, Any]]:
    """Yield one row for a kind; two where it leaves its policy to how the event came in."""
    if kind.policy is not None:
        yield _row(kind, kind.policy, kind.name)
        return
    yield _row(kind, BACKGROUND, f"{kind.name} (webhook)")
    yield _row(kind, USER_FACING, f"{kind.name} (enqueued)")


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
