"""Money at risk in a set of letters: absolute, per currency, refunds apart, never summed across."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Abs

from reliability.conf import conf
from reliability.console.figures import Counted
from reliability.console.parts import money
from reliability.models import DeadLetter


@dataclass(frozen=True)
class AtRisk:
    """The letters of a set and what they are worth, as words per currency."""

    letters: Counted
    amounts: list[str]
    refunds: list[str]


def at_risk(letters: "QuerySet[Any]") -> AtRisk:
    """Count a set and its money in one statement, over at most ``conf().count_max`` letters."""
    limit = conf().count_max
    some = letters.order_by().values("pk")[: limit + 1]
    rows = list(
        DeadLetter.objects.filter(pk__in=some)
        .order_by("currency", "exponent")
        .values("currency", "exponent")
        .annotate(
            n=Count("pk"),
            came=Sum("amount_minor", filter=Q(amount_minor__gte=0)),
            back=Sum(Abs("amount_minor"), filter=Q(amount_minor__lt=0)),
        )
    )
    total = sum(row["n"] for row in rows)
    return AtRisk(
        Counted(min(total, limit), total > limit),
        [money(r["came"], r["currency"], r["exponent"]) for r in rows if r["came"]],
        [money(r["back"], r["currency"], r["exponent"]) for r in rows if r["back"]],
    )


def listed(words: list[str]) -> str:
    """Join words as a sentence does: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1] if words else ""]))


def money_told(risk: AtRisk) -> str:
    """Say what a set is worth; empty where no letter tells an amount.

    A set that was counted up to the limit is worth at least what was counted.
    """
    told, least = [], "at least " if risk.letters.more else ""
    if risk.amounts:
        told.append(f"{least}{listed(risk.amounts)} at risk")
    if risk.refunds:
        told.append(f"refunds of {listed(risk.refunds)} apart")
    return ", ".join(told)
