"""The set-based compare and the rules told one by one give the same verdicts on any day.

``STORED_DAYS`` sets on how many (12).
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import time_machine

from reliability.models import Operation, Report, Source, StatementLine
from reliability.reconcile.compare import compare
from reliability.reconcile.day import compare_day
from reliability.reconcile.formats.base import Unit
from reliability.reconcile.verdicts import (
    CompareRules,
    Comparison,
    OurItem,
    OurState,
    TheirItem,
)
from tests.database.days import DAY, Row, a_file, a_source, give, operation

pytestmark = pytest.mark.django_db

STATES = ["done", "done", "done", "ready", "retrying", "dead", "discarded"]
BEGINS = datetime(2026, 10, 13, 22, tzinfo=UTC)
SIGNS = {"charge": 1, "refund": -1}
HOUR = timedelta(hours=1)
NAMES: dict[str, OurState] = {
    "ready": "received", "retrying": "retrying", "dead": "dead_letter",
    "discarded": "discarded", "done": "done",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(int(os.environ.get("STORED_DAYS", "12"))))
@pytest.mark.parametrize("declared", [None, 1_000_000])
def test_the_database_and_the_rules_agree_on_a_generated_day(
    seed: int, declared: int | None
) -> None:
    random = Random(f"day {seed}")
    with time_machine.travel(
        BEGINS + timedelta(hours=random.choice([24, 25, 30, 40])), tick=False
    ):
        source = a_source(
            statement_options=a_source("shape").statement_options
            | {"tolerance_minor": {"charge": 2}},
            grace_hours=random.choice([0, 2, 12]),
        )
        references = [f"ch_{n}" for n in range(30)]
        states = {
            one: a_random_operation(source, one, random)
            for one in references
            if random.random() < 0.7
        }
        give(source, a_file(*a_random_statement(references, random), declared=declared))
        report = compare_day(source, DAY, by="mara")
        assert report.completeness == ("incomplete" if declared else "complete")
        told = by_the_rules(source, report, states)
    assert stored(report) == by_reference(told)
    assert report.bridge.keys() == {unit.currency for unit in told.bridges}
    for unit, bridge in told.bridges.items():
        walk = report.bridge[unit.currency]
        assert (walk["theirs_minor"], walk["ours_minor"]) == (
            bridge.theirs_minor,
            bridge.ours_minor,
        )


def a_random_operation(source: Source, reference: str, random: Random) -> str:
    state = random.choice(STATES)
    operation(
        source,
        reference,
        random.choice([1000, 1001, 1003, 2000]),
        state=state,
        operation_class=random.choice(["charge", "charge", "refund"]),
        currency=random.choice(["EUR", "EUR", "EUR", "USD"]),
        occurred_at=BEGINS + random.random() * 24 * HOUR,
    )
    return state


def a_random_statement(references: list[str], random: Random) -> list[Row]:
    rows = []
    for n in range(40):
        at = BEGINS + random.random() * 24 * HOUR
        kind = random.choice(["charge", "charge", "charge", "refund", "fee"])
        rows.append(
            Row(
                reference=random.choice(references) if random.random() < 0.95 else "",
                amount=("-" if kind == "refund" else "") + random.choice(["10.00", "20.00"]),
                kind=kind,
                currency=random.choice(["EUR", "EUR", "EUR", "USD"]),
                occurred=at.isoformat(),
                id=f"t{n}",
            )
        )
    return rows


def by_the_rules(source: Source, report: Report, states: dict[str, str]) -> Comparison:
    """Put what the tables hold to the rules that are told one by one."""
    lines = StatementLine.objects.filter(statement=report.statement)
    theirs = [
        TheirItem(
            identity=line.identity,
            position=line.position,
            kind=line.operation_class or line.kind,
            keys=(line.reference,),
            amount_minor=line.amount_minor,
            unit=Unit(line.currency, line.exponent),
            occurred_at=line.occurred_at,
        )
        for line in lines
    ]
    ours = [
        OurItem(
            identity=one.reference,
            position=one.pk,
            kind=one.operation_class,
            keys=(one.reference,),
            amount_minor=(one.amount_minor or 0) * SIGNS[one.operation_class],
            unit=Unit(one.currency or "", one.exponent or 0),
            occurred_at=one.occurred_at,
            state=NAMES[states[one.reference]],
        )
        for one in Operation.objects.filter(source=source)
    ]
    grace = timedelta(hours=source.grace_hours)
    rules = CompareRules(
        day=DAY,
        zone=source.zone,
        window_end=report.ends_at,
        as_of=report.created_at,
        in_scope=frozenset(SIGNS),
        tolerance_minor={"charge": 2},
        grace=dict.fromkeys(SIGNS, grace),
        withheld=report.completeness == "incomplete",
    )
    return compare(theirs, ours, rules)


def stored(report: Report) -> Counter[tuple[str, str, str, bool, bool]]:
    rows = report.verdicts.values_list("reference", "verdict", "cause", "line", "operation")
    return Counter(
        (reference or "", verdict, cause, bool(line), bool(operation))
        for reference, verdict, cause, line, operation in rows
        if verdict != "out_of_scope" or operation
    )


def by_reference(told: Comparison) -> Counter[tuple[str, str, str, bool, bool]]:
    found: Counter[tuple[str, str, str, bool, bool]] = Counter()
    for finding in told.findings:
        item = (finding.theirs or finding.ours)[0]
        if finding.verdict == "out_of_scope" and not finding.ours:
            continue
        found[
            item.keys[0] or "", finding.verdict.value, finding.cause.value,
            bool(finding.theirs), bool(finding.ours),
        ] += 1  # fmt: skip
    return found
