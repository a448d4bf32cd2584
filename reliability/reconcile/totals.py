"""What a compare adds up to: items per verdict, and a bridge per currency that ends at zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reliability.reconcile.verdicts import Verdict


@dataclass(frozen=True)
class Bucket:
    """The items of one verdict, cause and pair of currencies, with both sides' signed sums."""

    verdict: str
    cause: str
    currency: str | None
    exponent: int | None
    our_currency: str | None
    our_exponent: int | None
    items: int
    their_minor: int
    our_minor: int
    digest: str


def counts_of(buckets: Sequence[Bucket], quarantined: int) -> dict[str, int]:
    """Count the items of each verdict; unreadable rows of the file are not comparable."""
    counts: dict[str, int] = {}
    for bucket in buckets:
        counts[bucket.verdict] = counts.get(bucket.verdict, 0) + bucket.items
    if quarantined:
        counts[Verdict.NOT_COMPARABLE] = counts.get(Verdict.NOT_COMPARABLE, 0) + quarantined
    return counts


def bridge_of(buckets: Sequence[Bucket]) -> dict[str, Any]:
    """Walk from their total to ours, per currency: their sum less ours, verdict by verdict.

    The steps of a currency add up to ``theirs_minor - ours_minor``, to the last unit.
    """
    bridge: dict[str, Any] = {}
    for bucket in buckets:
        if bucket.currency is None or bucket.exponent is None:
            continue
        theirs = _walk(bridge, bucket.currency, bucket.exponent)
        theirs["theirs_minor"] += bucket.their_minor
        step = _step(theirs, bucket.verdict)
        step["items"] += bucket.items
        step["minor"] += bucket.their_minor
        ours = theirs
        if bucket.our_currency is not None and bucket.our_exponent is not None:
            ours = _walk(bridge, bucket.our_currency, bucket.our_exponent)
        if bucket.our_minor:
            ours["ours_minor"] += bucket.our_minor
            _step(ours, bucket.verdict)["minor"] -= bucket.our_minor
    return bridge


def _step(walk: Any, verdict: str) -> Any:
    return walk["buckets"].setdefault(verdict, {"items": 0, "minor": 0})


def _walk(bridge: dict[str, Any], currency: str, exponent: int) -> Any:
    """Return a currency's bridge; one that comes with two exponents has two."""
    name = currency
    if name in bridge and bridge[name]["exponent"] != exponent:
        name = f"{currency}/{exponent}"
    empty = {"exponent": exponent, "theirs_minor": 0, "ours_minor": 0, "buckets": {}}
    return bridge.setdefault(name, empty)
