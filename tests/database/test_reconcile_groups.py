"""A payout or a batch: one item on one side is compared with many on the other, by their sum."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
import time_machine

from reliability.models import Discrepancy, Job, Operation, Report, Source, StatementLine
from reliability.reconcile.compare import compare
from reliability.reconcile.day import compare_day
from reliability.reconcile.discrepancies import Refusal
from reliability.reconcile.formats.base import Unit
from reliability.reconcile.recover import Recovered, recover
from reliability.reconcile.verdicts import (
    CompareRules,
    Comparison,
    OurItem,
    OurState,
    TheirItem,
)
from reliability.work.dead_letters import Act
from tests.database import world
from tests.database.days import (
    DAY,
    MAPPED,
    MORNING_AFTER,
    NOON,
    Row,
    a_file,
    a_source,
    give,
    operation,
    report,
    told,
)

pytestmark = pytest.mark.django_db

GROUPED = MAPPED | {"grouped_classes": ["charge", "refund"], "tolerance_minor": {"charge": 2}}
HOUR = timedelta(hours=1)
DAYS = int(os.environ.get("STORED_DAYS", "6"))
NEXT_DAY_S = Row("po_1", "10.00", occurred="2026-10-15T09:00:00+02:00")
STATES: list[tuple[str, OurState]] = [
    ("done", "done"), ("ready", "received"), ("retrying", "retrying"),
    ("dead", "dead_letter"), ("discarded", "discarded"),
]  # fmt: skip


def grouped(**facts: Any) -> Source:
    return a_source(statement_options=GROUPED, **facts)


def member(source: Source, n: int, amount: int, **facts: Any) -> Job:
    return operation(source, f"part {n}", amount, batch="po_1", **facts)


def parts(*amounts: str) -> list[Row]:
    return [Row("po_1", amount, id=f"t{n}") for n, amount in enumerate(amounts)]


def sums(made: Report) -> list[tuple[int | None, int | None, bool, bool]]:
    rows = made.verdicts.order_by("pk").values_list(
        "their_minor", "our_minor", "line", "operation"
    )
    return [(theirs, ours, bool(line), bool(one)) for theirs, ours, line, one in rows]


@pytest.fixture(autouse=True)
def morning() -> Any:
    with time_machine.travel(MORNING_AFTER, tick=False):
        yield


def test_one_line_is_a_whole_batch_of_ours_when_the_sums_agree() -> None:
    source = grouped()
    member(source, 1, 600)
    member(source, 2, 400)
    made = report(source, Row("po_1", "10.00"))
    assert told(made) == {("po_1", "matched", "")}
    assert sums(made) == [(1000, 1000, True, True), (None, None, False, True)]
    assert made.bridge["EUR"]["theirs_minor"] == made.bridge["EUR"]["ours_minor"] == 1000


def test_many_lines_are_one_payout_of_ours_when_the_sums_agree() -> None:
    source = grouped()
    operation(source, "po_1", 1000)
    made = report(source, *parts("6.00", "4.00"))
    assert told(made) == {("po_1", "matched", "")}
    assert sums(made) == [(1000, 1000, True, True), (None, None, True, False)]


def test_a_sum_that_differs_is_one_discrepancy_with_both_sums() -> None:
    source = grouped()
    member(source, 1, 600)
    member(source, 2, 350)
    report(source, Row("po_1", "10.00"))
    [one] = Discrepancy.objects.all()
    assert (one.reference, one.verdict) == ("po_1", "amount_mismatch")
    assert (one.their_minor, one.our_minor) == (1000, 950)


def test_a_sum_may_be_off_by_the_tolerance_once_not_once_a_member() -> None:
    source = grouped()
    member(source, 1, 599)
    member(source, 2, 399)
    assert told(report(source, Row("po_1", "10.00"))) == {("po_1", "matched_tolerance", "")}
    assert told(report(source, Row("po_1", "10.01"))) == {("po_1", "amount_mismatch", "")}


def test_many_against_many_is_ambiguous() -> None:
    source = grouped()
    member(source, 1, 600)
    member(source, 2, 400)
    made = report(source, *parts("6.00", "4.00"))
    assert made.counts == {"ambiguous": 4}


def test_a_member_that_did_not_take_effect_makes_the_group_missing_and_is_requeued_itself() -> (
    None
):
    source = grouped()
    member(source, 1, 600)
    dead = member(source, 2, 400, state="dead")
    made = report(source, Row("po_1", "10.00"))
    assert told(made) == {("po_1", "missing", "in_dead_letter")}
    [one] = Discrepancy.objects.all()
    assert (one.their_minor, one.our_minor, one.job) == (1000, 600, dead)
    done = recover(one, Act(tenant=world.tenant(), actor="mara", reason="gone"))
    assert isinstance(done, Refusal)
    assert "requeue those" in done.why
    assert Operation.objects.filter(source=source).count() == 2


def test_a_payout_that_never_came_is_recovered_with_the_sum_of_its_lines() -> None:
    source = grouped()
    report(source, *parts("6.00", "4.00"))
    [one] = Discrepancy.objects.all()
    assert (one.verdict, one.cause, one.their_minor) == ("missing", "never_received", 1000)
    with world.local("stripe.charge.succeeded", lambda event: None):
        done = recover(one, Act(tenant=world.tenant(), actor="mara", reason="gone"))
        assert isinstance(done, Recovered)
        world.work_local()
    assert Operation.objects.get(source=source).amount_minor == 1000
    assert told(compare_day(source, DAY, by="mara")) == {("po_1", "matched", "")}


def test_a_member_is_found_on_whatever_day_it_happened() -> None:
    source = grouped()
    member(source, 1, 600, occurred_at=NOON - timedelta(days=9))
    member(source, 2, 400)
    assert told(report(source, Row("po_1", "10.00"))) == {("po_1", "matched_timing", "")}


def test_a_batch_the_next_day_lists_was_in_transit() -> None:
    source = grouped()
    member(source, 1, 600)
    member(source, 2, 400)
    assert told(report(source, Row("po_2"))) >= {("po_1", "unexpected", "")}
    with time_machine.travel(MORNING_AFTER + timedelta(days=1), tick=False):
        made = report(source, NEXT_DAY_S, day=DAY + timedelta(days=1))
        assert told(made) == {("po_1", "matched_timing", "")}
    assert told(compare_day(source, DAY, by="mara")) >= {("po_1", "in_transit", "")}


def test_a_batch_the_day_before_listed_is_not_looked_at_again_and_a_repeat_is_theirs() -> None:
    source = grouped(grace_hours=2)
    member(source, 1, 600, occurred_at=NOON + 11 * HOUR)
    member(source, 2, 400, occurred_at=NOON + 11 * HOUR)
    assert told(report(source, Row("po_1", "10.00"))) == {("po_1", "matched", "")}
    with time_machine.travel(MORNING_AFTER + timedelta(days=1), tick=False):
        after = DAY + timedelta(days=1)
        other = replace(NEXT_DAY_S, reference="po_2")
        assert told(report(source, other, day=after)) == {
            ("po_2", "missing", "never_received")
        }
        again = report(source, other, NEXT_DAY_S, day=after)
        assert told(again) >= {("po_1", "duplicate_theirs", "")}
        assert sums(again) == [(1000, None, True, False), (1000, None, True, False)]


def test_classes_that_are_not_grouped_are_compared_one_by_one_beside_it() -> None:
    source = a_source(statement_options=GROUPED | {"grouped_classes": ["refund"]})
    operation(source, "ch_1")
    member(source, 1, 600, operation_class="refund")
    member(source, 2, 400, operation_class="refund")
    made = report(source, Row("ch_1"), Row("po_1", "-10.00", kind="refund"))
    assert made.counts == {"matched": 3}
    assert told(made) == {("ch_1", "matched", ""), ("po_1", "matched", "")}


# Generated days: the rules told one by one say the same.


@pytest.mark.parametrize("seed", range(DAYS))
@pytest.mark.parametrize("declared", [None, 1_000])
def test_the_database_and_the_rules_agree_on_a_generated_day_of_groups(
    seed: int, declared: int | None
) -> None:
    random = Random(f"groups {seed}")
    source = grouped(grace_hours=random.choice([0, 2, 12]))
    states = {
        f"part {n}": _a_random_member(source, n, random)
        for n in range(30)
        if random.random() < 0.8
    }
    rows = [_a_random_row(n, random) for n in range(18)]
    give(source, a_file(*rows, declared=declared))
    made = compare_day(source, DAY, by="mara")
    said = _by_the_rules(source, made, states)
    assert _stored(made) == _items(said)
    for unit, bridge in said.bridges.items():
        walk = made.bridge[unit.currency]
        assert walk["theirs_minor"] == bridge.theirs_minor
        assert walk["ours_minor"] == bridge.ours_minor
        steps = {name: step["minor"] for name, step in walk["buckets"].items()}
        assert {k: v for k, v in steps.items() if v} == {
            k.value: v for k, v in bridge.buckets.items() if v
        }


def _a_random_member(source: Source, n: int, random: Random) -> OurState:
    state, name = random.choice(STATES[:1] * 6 + STATES)
    operation(
        source, f"part {n}", random.choice([300, 500, 501]), state=state,
        batch=f"po_{random.randrange(12)}",
        operation_class=random.choice(["charge", "charge", "refund"]),
        currency=random.choice(["EUR"] * 9 + ["USD"]),
        occurred_at=NOON + random.randrange(-12, 12) * HOUR,
    )  # fmt: skip
    return name


def _a_random_row(n: int, random: Random) -> Row:
    kind = random.choice(["charge", "charge", "charge", "refund"])
    amount = random.choice(["3.00", "5.00", "8.00", "10.00", "10.01"])
    return Row(
        reference=f"po_{random.randrange(14)}" if random.random() < 0.95 else "",
        amount=f"-{amount}" if kind == "refund" else amount,
        kind=kind,
        currency=random.choice(["EUR"] * 9 + ["USD"]),
        occurred=(NOON + random.randrange(-12, 12) * HOUR).isoformat(),
        id=f"t{n}",
    )


def _by_the_rules(source: Source, made: Report, states: dict[str, OurState]) -> Comparison:
    theirs = [
        TheirItem(
            identity=str(line.pk), position=line.position, kind=line.operation_class or line.kind,
            keys=(line.reference,), amount_minor=line.amount_minor,
            unit=Unit(line.currency, line.exponent), occurred_at=line.occurred_at,
            group=line.reference,
        )
        for line in StatementLine.objects.filter(statement=made.statement)
    ]  # fmt: skip
    ours = [
        OurItem(
            identity=str(one.pk), position=one.pk, kind=one.operation_class,
            keys=(one.reference,),
            amount_minor=(one.amount_minor or 0) * (-1 if one.operation_class == "refund" else 1),
            unit=Unit(one.currency or "", one.exponent or 0), occurred_at=one.occurred_at,
            state=states[one.reference], group=one.batch,
        )
        for one in Operation.objects.filter(source=source)
    ]  # fmt: skip
    classes = frozenset({"charge", "refund"})
    rules = CompareRules(
        day=DAY, zone=source.zone, window_end=made.ends_at, as_of=made.created_at,
        in_scope=classes, grouped=classes, tolerance_minor={"charge": 2},
        grace=dict.fromkeys(classes, timedelta(hours=source.grace_hours)),
        withheld=made.completeness == "incomplete",
    )  # fmt: skip
    return compare(theirs, ours, rules)


Items = Counter[tuple[str, str, str]]


def _items(said: Comparison) -> Items:
    return Items(
        (side + item.identity, finding.verdict.value, finding.cause.value)
        for finding in said.findings
        for side, group in (("line ", finding.theirs), ("operation ", finding.ours))
        for item in group
    )


def _stored(made: Report) -> Items:
    found: Items = Counter()
    for line, one, verdict, cause in made.verdicts.values_list(
        "line", "operation", "verdict", "cause"
    ):
        found.update({(f"line {line}", verdict, cause): 1} if line else {})
        found.update({(f"operation {one}", verdict, cause): 1} if one else {})
    return found
