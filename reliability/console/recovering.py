"""What a report misses and one act could recover: the set its button, page and form speak of."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from reliability.conf import conf
from reliability.console import compared
from reliability.console.figures import Counted
from reliability.console.parts import money
from reliability.console.risk import listed
from reliability.models import Discrepancy, Report
from reliability.reconcile.recover_many import LeftOut, Outlook, WillRecover, outlook

LEFT_MAX = 200
"""Discrepancies shown as left out; the list of them all is one click away."""
WITH_LINES = ("source", "line__statement__source")


@dataclass(frozen=True)
class Plan:
    """What one act would do of what a report misses; ``more`` when some wait for another act."""

    acted: list[Outlook]
    left: list[LeftOut]
    more: bool
    left_more: bool

    @cached_property
    def number(self) -> Counted:
        return Counted(len(self.acted), self.more)

    @property
    def recovered(self) -> list[Outlook]:
        return [one for one in self.acted if isinstance(one, WillRecover)]

    @property
    def asked(self) -> list[Outlook]:
        return [one for one in self.acted if not isinstance(one, WillRecover)]

    @property
    def worth(self) -> str:
        """Say what would be recovered is worth per currency, refunds apart; never summed across."""
        return _worth(one.discrepancy for one in self.recovered)


def plan(report: Report, actor: str) -> Plan:
    """Look at what the report misses and nobody has begun to recover, oldest first.

    At most ``conf().selection_max`` that never came, and ``LEFT_MAX`` of the others.
    """
    missing = compared.discrepancies_of(report).filter(
        family=Discrepancy.Family.MISSING, status=Discrepancy.Status.OPEN
    )
    missing = missing.select_related(*WITH_LINES).order_by("pk")
    limit = conf().selection_max
    never_came = missing.filter(cause="never_received")[: limit + 1]
    others = missing.exclude(cause="never_received")[: LEFT_MAX + 1]
    looked = outlook(report.source, [*never_came[:limit], *others[:LEFT_MAX]], actor)
    left = [one for one in looked if isinstance(one, LeftOut)]
    return Plan(
        acted=[one for one in looked if not isinstance(one, LeftOut)],
        left=left[:LEFT_MAX],
        more=len(never_came) > limit,
        left_more=len(others) > LEFT_MAX or len(left) > LEFT_MAX,
    )


def _worth(found: Iterable[Discrepancy]) -> str:
    sums: Counter[tuple[str, int, bool]] = Counter()
    for one in found:
        minor = one.their_minor or 0
        sums[one.currency, one.exponent, minor < 0] += abs(minor)
    back = listed(_written(sums, back=True))
    return ", ".join(
        filter(
            None, [listed(_written(sums, back=False)), f"refunds of {back}" if back else ""]
        )
    )


def _written(sums: "Counter[tuple[str, int, bool]]", *, back: bool) -> list[str]:
    return [
        money(minor, currency, exponent)
        for (currency, exponent, is_back), minor in sorted(sums.items())
        if is_back is back and minor
    ]
