"""What is compared and what a comparison says: items, rules, verdicts, causes, bridges."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Literal

from reliability.reconcile.formats.base import Unit

OurState = Literal["done", "received", "retrying", "dead_letter", "discarded"]


class Verdict(StrEnum):
    """What the comparison says about one item."""

    MATCHED = "matched"
    MATCHED_TIMING = "matched_timing"
    MATCHED_TOLERANCE = "matched_tolerance"
    AMOUNT_MISMATCH = "amount_mismatch"
    CURRENCY_MISMATCH = "currency_mismatch"
    STATUS_MISMATCH = "status_mismatch"
    FEE_MISMATCH = "fee_mismatch"
    MISSING = "missing"
    UNEXPECTED = "unexpected"
    IN_TRANSIT = "in_transit"
    EARLY = "early"
    DUPLICATE_OURS = "duplicate_ours"
    DUPLICATE_THEIRS = "duplicate_theirs"
    AMBIGUOUS = "ambiguous"
    OUT_OF_SCOPE = "out_of_scope"
    NOT_COMPARABLE = "not_comparable"


class Cause(StrEnum):
    """Why; most verdicts need none."""

    NONE = ""
    NEVER_RECEIVED = "never_received"
    RECEIVED_UNPROCESSED = "received_unprocessed"
    RETRYING = "retrying"
    IN_DEAD_LETTER = "in_dead_letter"
    DISCARDED = "discarded"
    EXPONENT = "exponent"
    QUARANTINED = "quarantined"
    NO_KEY = "no_key"
    WITHHELD = "withheld"


#: In the order of severity: a group of operations shows its worst.
STATE_CAUSES: Mapping[OurState, Cause] = {
    "done": Cause.NONE,
    "received": Cause.RECEIVED_UNPROCESSED,
    "retrying": Cause.RETRYING,
    "dead_letter": Cause.IN_DEAD_LETTER,
    "discarded": Cause.DISCARDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirItem:
    """One line of the statement; ``keys`` in the source's order, the strongest first.

    ``kind`` is the operation class it maps to. A quarantined line has an empty currency.
    """

    identity: str
    position: int
    kind: str
    keys: tuple[str | None, ...]
    amount_minor: int
    unit: Unit
    occurred_at: datetime | None = None
    occurred_day: date | None = None
    status: str = ""
    fee_minor: int | None = None
    group: str | None = None
    quarantined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OurItem:
    """One operation; only one that is ``done`` counts in our total."""

    identity: str
    position: int
    kind: str
    keys: tuple[str | None, ...]
    amount_minor: int
    unit: Unit
    occurred_at: datetime
    state: OurState = "done"
    status: str = ""
    fee_minor: int | None = None
    group: str | None = None

    @property
    def counted_minor(self) -> int:
        """What the operation adds to our total: its amount once it took effect, else 0."""
        return self.amount_minor if self.state == "done" else 0


@dataclass(frozen=True, kw_only=True)
class CompareRules:
    """How one source's day is compared.

    ``window_end`` is the statement's last instant (exclusive); ``as_of`` is when we compare.
    Kinds in ``grouped`` match by declared group with a sum check. ``withheld``: the statement
    is incomplete, so nothing may be called missing or unexpected.
    """

    day: date
    zone: str
    window_end: datetime
    as_of: datetime
    in_scope: frozenset[str]
    grouped: frozenset[str] = frozenset()
    tolerance_minor: Mapping[str, int] = field(default_factory=dict)
    grace: Mapping[str, timedelta] = field(default_factory=dict)
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict and the items it is about; a line and its operation share one."""

    verdict: Verdict
    theirs: tuple[TheirItem, ...] = ()
    ours: tuple[OurItem, ...] = ()
    cause: Cause = Cause.NONE


@dataclass(slots=True)
class Bridge:
    """From their total to ours in one unit; ``rest_minor`` is always zero."""

    theirs_minor: int = 0
    ours_minor: int = 0
    buckets: Counter[Verdict] = field(default_factory=Counter)

    @property
    def rest_minor(self) -> int:
        """What the buckets do not explain."""
        return self.theirs_minor - self.ours_minor - sum(self.buckets.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every finding, ordered by position, and one bridge per currency and exponent."""

    findings: tuple[Finding, ...]
    bridges: Mapping[Unit, Bridge]
