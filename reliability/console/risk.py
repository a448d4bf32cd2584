"""Money at risk in a set of letters: absolute, per currency, refunds apart, never summed across."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from reliability import sql
from reliability.conf import conf
from reliability.console.figures import Counted
from reliability.console.parts import money

JOINER = "\u2060"
"""Lets no line end where it stands, and has no width."""
UNIT = ("currency", "exponent", "amount_minor")


@dataclass(frozen=True)
class AtRisk:
    """The letters of a set and what they are worth, as words per currency."""

    letters: Counted
    amounts: list[str]
    refunds: list[str]


@dataclass(frozen=True)
class _Unit:
    currency: str | None
    exponent: int | None
    letters: int
    came_minor: Decimal | None
    back_minor: Decimal | None


def at_risk(letters: "QuerySet[Any]") -> AtRisk:
    """Count a set and its money in one statement, over at most ``conf().count_max`` letters."""
    limit = conf().count_max
    rows = _units(letters.order_by().values(*UNIT)[: limit + 1])
    total = sum(row.letters for row in rows)
    return AtRisk(
        Counted(min(total, limit), total > limit),
        [money(int(r.came_minor), r.currency, r.exponent) for r in rows if r.came_minor],
        [money(int(r.back_minor), r.currency, r.exponent) for r in rows if r.back_minor],
    )


def _units(some: "QuerySet[Any]") -> list[_Unit]:
    try:
        chosen, given = some.query.sql_with_params()
    except EmptyResultSet:
        return []
    statement = sql.statement("letters_at_risk").replace("{chosen}", chosen)
    with sql.database().cursor() as cursor:
        cursor.execute(statement, given)
        return [_Unit(*row) for row in cursor.fetchall()]


def listed(amounts: list[str]) -> str:
    """Join amounts as a sentence does: a, b and c; none is torn from its minus at a line's end."""
    words = [amount.replace("−", f"−{JOINER}") for amount in amounts]
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
