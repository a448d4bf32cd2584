"""Every line and every operation gets exactly one verdict, whatever happened that day.

``GENERATED_DAYS`` sets on how many days what always holds is tried (1 000).
"""

import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliability.reconcile.compare import compare
from reliability.reconcile.formats.base import Unit
from reliability.reconcile.verdicts import (
    Cause,
    CompareRules,
    Comparison,
    OurItem,
    OurState,
    TheirItem,
    Verdict,
)

EUR, USD = Unit("EUR", 2), Unit("USD", 2)
END = datetime(2026, 10, 14, 22, tzinfo=UTC)
NOON = datetime(2026, 10, 14, 10, tzinfo=UTC)
RULES = CompareRules(
    day=date(2026, 10, 14),
    zone="Europe/Amsterdam",
    window_end=END,
    as_of=END + timedelta(hours=8),
    in_scope=frozenset({"charge", "refund", "payout"}),
    grouped=frozenset({"payout"}),
    tolerance_minor={"refund": 2},
    grace={"charge": timedelta(hours=2)},
)


def theirs(key: str | None, amount: int = 1000, **fields: Any) -> TheirItem:
    usual: dict[str, Any] = {
        "kind": "charge",
        "keys": (key,),
        "unit": EUR,
        "occurred_at": NOON,
    }
    usual |= {"position": 1, "identity": f"line {key}", "amount_minor": amount}
    return TheirItem(**usual | fields)


def ours(key: str | None, amount: int = 1000, **fields: Any) -> OurItem:
    usual: dict[str, Any] = {
        "kind": "charge",
        "keys": (key,),
        "unit": EUR,
        "occurred_at": NOON,
    }
    usual |= {"position": 1, "identity": f"operation {key}", "amount_minor": amount}
    return OurItem(**usual | fields)


def verdicts(
    lines: list[TheirItem], operations: list[OurItem], rules: CompareRules = RULES
) -> list[tuple[str, str]]:
    found = compare(lines, operations, rules)
    assert all(bridge.rest_minor == 0 for bridge in found.bridges.values())
    return [(finding.verdict.value, finding.cause.value) for finding in found.findings]


# One line, one operation.


@pytest.mark.parametrize(
    ("line", "operation", "verdict"),
    [
        ({}, {}, ("matched", "")),
        ({"amount": 1001}, {}, ("amount_mismatch", "")),
        ({"amount": -1000}, {}, ("amount_mismatch", "")),
        ({"unit": USD}, {}, ("currency_mismatch", "")),
        ({"unit": Unit("EUR", 3)}, {}, ("amount_mismatch", "exponent")),
        ({"status": "paid"}, {"status": "failed"}, ("status_mismatch", "")),
        ({"status": "paid"}, {}, ("matched", "")),
        ({"fee_minor": 3}, {"fee_minor": 4}, ("fee_mismatch", "")),
        ({"fee_minor": 3}, {}, ("matched", "")),
        ({}, {"occurred_at": NOON - timedelta(days=1)}, ("matched_timing", "")),
        ({}, {"occurred_at": NOON + timedelta(hours=9)}, ("matched", "")),
        (
            {"occurred_at": None, "occurred_day": date(2026, 10, 15)},
            {},
            ("matched_timing", ""),
        ),
        ({"occurred_at": None}, {}, ("matched", "")),
        ({"kind": "refund", "amount": 1002}, {"kind": "refund"}, ("matched_tolerance", "")),
        ({"kind": "refund", "amount": 1003}, {"kind": "refund"}, ("amount_mismatch", "")),
        ({}, {"state": "received"}, ("missing", "received_unprocessed")),
        ({}, {"state": "retrying"}, ("missing", "retrying")),
        ({}, {"state": "dead_letter"}, ("missing", "in_dead_letter")),
        ({}, {"state": "discarded"}, ("missing", "discarded")),
        ({"amount": 7}, {"state": "dead_letter"}, ("missing", "in_dead_letter")),
        ({"occurred_at": RULES.as_of}, {"state": "retrying"}, ("early", "")),
    ],
)
def test_a_line_and_its_operation_share_one_verdict(
    line: dict[str, Any], operation: dict[str, Any], verdict: tuple[str, str]
) -> None:
    assert verdicts([theirs("ch_1", **line)], [ours("ch_1", **operation)]) == [verdict]


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ({}, ("missing", "never_received")),
        ({"occurred_at": RULES.as_of - timedelta(hours=2)}, ("missing", "never_received")),
        ({"occurred_at": RULES.as_of - timedelta(hours=1, minutes=59)}, ("early", "")),
        ({"occurred_at": None}, ("missing", "never_received")),
        ({"kind": "fee"}, ("out_of_scope", "")),
        ({"quarantined": True, "unit": Unit("", 0), "amount": 0}, ("not_comparable", "quarantined")),
        ({"keys": (None, "")}, ("not_comparable", "no_key")),
    ],
)  # fmt: skip
def test_a_line_alone_is_judged_by_its_age_and_kind(
    line: dict[str, Any], verdict: tuple[str, str]
) -> None:
    assert verdicts([theirs("ch_1", **line)], []) == [verdict]


@pytest.mark.parametrize(
    ("operation", "verdict"),
    [
        ({}, ("unexpected", "")),
        ({"state": "dead_letter"}, ("unexpected", "in_dead_letter")),
        ({"state": "discarded"}, ("out_of_scope", "discarded")),
        ({"occurred_at": END - timedelta(hours=2)}, ("in_transit", "")),
        ({"occurred_at": END - timedelta(hours=2, seconds=1)}, ("unexpected", "")),
        ({"occurred_at": END + timedelta(days=1)}, ("in_transit", "")),
        ({"kind": "fee"}, ("out_of_scope", "")),
        ({"keys": ()}, ("not_comparable", "no_key")),
    ],
)
def test_an_operation_alone_is_judged_by_when_it_was_due(
    operation: dict[str, Any], verdict: tuple[str, str]
) -> None:
    assert verdicts([], [ours("ch_1", **operation)]) == [verdict]


def test_an_incomplete_statement_accuses_nobody() -> None:
    rules = replace(RULES, withheld=True)
    found = verdicts(
        [theirs("ch_1"), theirs("ch_2"), theirs("ch_4", 999)],
        [ours("ch_2", state="dead_letter"), ours("ch_3"), ours("ch_4")],
        rules,
    )
    assert sorted(found) == [
        ("amount_mismatch", ""),
        ("not_comparable", "withheld"),
        ("not_comparable", "withheld"),
        ("not_comparable", "withheld"),
    ]


# Keys.


def test_a_repeat_is_a_verdict_before_any_join() -> None:
    lines = [theirs("ch_1", position=n, identity=f"l{n}") for n in (1, 2, 3)]
    operations = [ours("ch_1", position=n, identity=f"o{n}") for n in (1, 2)]
    found = compare(lines, operations, RULES)
    assert [(f.verdict, len(f.theirs), len(f.ours)) for f in found.findings] == [
        (Verdict.MATCHED, 1, 1),
        (Verdict.DUPLICATE_THEIRS, 1, 0),
        (Verdict.DUPLICATE_THEIRS, 1, 0),
        (Verdict.DUPLICATE_OURS, 0, 1),
    ]
    assert found.findings[0].theirs[0].position == 1
    assert found.bridges[EUR].buckets[Verdict.DUPLICATE_THEIRS] == 2000
    assert found.bridges[EUR].buckets[Verdict.DUPLICATE_OURS] == -1000


def test_one_reference_of_two_kinds_is_two_operations() -> None:
    found = verdicts(
        [theirs("x"), theirs("x", -1000, kind="refund")], [ours("x", -1000, kind="refund")]
    )
    assert sorted(found) == [("matched", ""), ("missing", "never_received")]


def test_the_first_key_both_sides_have_decides() -> None:
    weak = verdicts([theirs("", keys=(None, "order 1"))], [ours("", keys=("ch_1", "order 1"))])
    assert weak == [("matched", "")]


def test_a_conflict_on_a_stronger_key_forbids_a_weaker_match() -> None:
    found = verdicts(
        [theirs("", keys=("ch_2", "order 1"))], [ours("", keys=("ch_1", "order 1"))]
    )
    assert sorted(found) == [("missing", "never_received"), ("unexpected", "")]


def test_a_weak_key_shared_by_several_is_ambiguous_not_first_come() -> None:
    two_lines = [theirs("", keys=(f"ch_{n}", "order 1"), identity=str(n)) for n in (1, 2)]
    found = verdicts(two_lines, [ours("", keys=(None, "order 1"))])
    assert found == [("ambiguous", "")] * 3
    two_operations = [ours("", keys=(f"ch_{n}", "order 1"), identity=str(n)) for n in (1, 2)]
    assert (
        verdicts([theirs("", keys=(None, "order 1"))], two_operations)
        == [("ambiguous", "")] * 3
    )


def test_a_strong_match_takes_its_items_out_of_the_weak_key() -> None:
    lines = [
        theirs("", keys=("ch_1", "order 1")),
        theirs("", keys=("ch_2", "order 1"), position=2),
    ]
    operations = [
        ours("", keys=("ch_1", "order 1")),
        ours("", keys=(None, "order 1"), position=2),
    ]
    assert verdicts(lines, operations) == [("matched", ""), ("matched", "")]


# Groups.


def payout(amount: int, **fields: Any) -> TheirItem:
    return theirs("", amount, kind="payout", group="po_1", **fields)


def part(amount: int, n: int, **fields: Any) -> OurItem:
    fields = {"group": "po_1", "position": n, "identity": f"part {n}"} | fields
    return ours("", amount, kind="payout", **fields)


def test_one_line_matches_many_operations_when_their_sum_agrees() -> None:
    found = compare([payout(1000)], [part(600, 1), part(400, 2)], RULES)
    (only,) = found.findings
    assert (only.verdict, len(only.theirs), len(only.ours)) == (Verdict.MATCHED, 1, 2)
    assert verdicts([payout(1000)], [part(600, 1), part(399, 2)]) == [("amount_mismatch", "")]


def test_a_group_with_an_operation_that_did_not_take_effect_is_missing_with_the_worst_cause() -> (
    None
):
    parts = [part(600, 1, state="retrying"), part(300, 2, state="dead_letter"), part(100, 3)]
    assert verdicts([payout(1000)], parts) == [("missing", "in_dead_letter")]


def test_many_to_many_in_one_group_is_ambiguous() -> None:
    lines = [payout(1, identity="a"), payout(2, identity="b", position=2)]
    assert verdicts(lines, [part(1, 1), part(2, 2)]) == [("ambiguous", "")] * 4


def test_a_group_only_one_side_knows_is_judged_item_by_item() -> None:
    assert verdicts([payout(5)], []) == [("missing", "never_received")]
    assert verdicts([], [part(5, 1), part(6, 2)]) == [("unexpected", "")] * 2
    assert verdicts([], [part(5, 1, group=None)]) == [("not_comparable", "no_key")]


# Bridges.


def test_the_bridge_leads_from_their_total_to_ours_per_unit() -> None:
    found = compare(
        [theirs("a"), theirs("b", 31000), theirs("c", 55), theirs("f", -45, kind="fee")],
        [ours("a"), ours("b", 31000, state="dead_letter"), ours("c", 50), ours("d", 7)],
        RULES,
    )
    bridge = found.bridges[EUR]
    assert (bridge.theirs_minor, bridge.ours_minor, bridge.rest_minor) == (32010, 1057, 0)
    assert {verdict: minor for verdict, minor in bridge.buckets.items() if minor} == {
        Verdict.MISSING: 31000,
        Verdict.AMOUNT_MISMATCH: 5,
        Verdict.UNEXPECTED: -7,
        Verdict.OUT_OF_SCOPE: -45,
    }


# Generated days: the invariants, and a second opinion that shares no code.

DAYS = int(os.environ.get("GENERATED_DAYS", "1000"))
STATES: list[OurState] = ["done", "received", "retrying", "dead_letter", "discarded"]
MOMENTS = [
    NOON,
    NOON - timedelta(days=1),
    END - timedelta(hours=1),
    RULES.as_of - timedelta(hours=1),
]


def either(dice: Random, keys: int) -> dict[str, Any]:
    weak = [dice.choice(["", "x", "y"])] if keys > 1 else []
    kinds = ["charge", "charge", "refund", "fee"] + ["payout"] * 2 * (keys > 1)
    return {
        "kind": dice.choice(kinds),
        "group": dice.choice([None, "po_1", "po_2", "po_3"]) if keys > 1 else None,
        "keys": (dice.choice(["", "a", "b", "c", "d", "e"]), *weak),
        "amount_minor": dice.randint(-3, 3),
        "unit": dice.choice([EUR, EUR, USD]),
        "occurred_at": dice.choice(MOMENTS),
    }


def generated_day(
    seed: int, size: int, *, keys: int
) -> tuple[list[TheirItem], list[OurItem], Random]:
    dice = Random(seed)
    lines = [
        theirs("", quarantined=dice.random() < 0.1, position=n, identity=str(n), **fields)
        for n in range(dice.randint(0, size))
        if (fields := either(dice, keys))
    ]
    operations = [
        ours("", state=dice.choice(STATES), position=n, identity=str(n), **fields)
        for n in range(dice.randint(0, size))
        if (fields := either(dice, keys))
    ]
    return lines, operations, dice


SEEDS, SIZES = st.integers(0, 2**48), st.integers(1, 10)


def names(found: Comparison) -> dict[str, tuple[Verdict, Cause]]:
    """Each item's verdict, by side and identity; fails when an item has two."""
    named: dict[str, tuple[Verdict, Cause]] = {}
    for finding in found.findings:
        for side, group in (("t", finding.theirs), ("o", finding.ours)):
            for item in group:
                assert named.setdefault(side + item.identity, (finding.verdict, finding.cause))
    assert len(named) == sum(len(f.theirs) + len(f.ours) for f in found.findings)
    return named


@settings(max_examples=DAYS, deadline=None)
@given(SEEDS, SIZES, st.booleans())
def test_one_verdict_each_conserved_totals_and_no_matter_the_order(
    seed: int,
    size: int,
    withheld: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    lines, operations, dice = generated_day(seed, size, keys=2)
    rules = replace(RULES, withheld=withheld)
    found = compare(lines, operations, rules)
    named = names(found)
    assert len(named) == len(lines) + len(operations)
    for unit, bridge in found.bridges.items():
        assert bridge.rest_minor == 0
        assert bridge.theirs_minor == sum(t.amount_minor for t in lines if t.unit == unit)
        done = [o for o in operations if o.unit == unit and o.state == "done"]
        assert bridge.ours_minor == sum(o.amount_minor for o in done)
    if withheld:
        said = {verdict for verdict, _ in named.values()}
        assert not {Verdict.MISSING, Verdict.UNEXPECTED} & said
    dice.shuffle(lines)
    dice.shuffle(operations)
    assert compare(lines, operations, rules) == found


@settings(max_examples=DAYS, deadline=None)
@given(SEEDS, SIZES)
def test_a_group_is_matched_only_where_one_answers_to_all_and_the_sums_agree(
    seed: int, size: int
) -> None:
    lines, operations, _ = generated_day(seed, size, keys=2)
    for finding in compare(lines, operations, RULES).findings:
        if len(finding.theirs) + len(finding.ours) <= 2:
            continue
        items: list[Any] = [*finding.theirs, *finding.ours]
        assert min(len(finding.theirs), len(finding.ours)) == 1
        assert {item.kind for item in items} == {"payout"}
        assert len({item.group for item in items}) == 1
        everything: list[Any] = [*lines, *operations]
        whole = [item for item in everything if item.group == items[0].group]
        assert len(items) == sum(
            item.kind == "payout" and not getattr(item, "quarantined", False) for item in whole
        )
        off = sum(t.amount_minor for t in finding.theirs) - sum(
            o.amount_minor for o in finding.ours
        )
        done = all(o.state == "done" for o in finding.ours)
        agrees = off == 0 and done and len({item.unit for item in items}) == 1
        assert agrees == (finding.verdict in {Verdict.MATCHED, Verdict.MATCHED_TIMING})


@settings(max_examples=DAYS, deadline=None)
@given(SEEDS, SIZES)
def test_adding_the_missing_event_changes_only_its_own_item(seed: int, size: int) -> None:
    lines, operations, _ = generated_day(seed, size, keys=2)
    found = compare(lines, operations, RULES)
    before = names(found)
    unheard = (Verdict.MISSING, Cause.NEVER_RECEIVED)
    single = [t for t in lines if t.keys[0] and t.kind not in RULES.grouped]
    missing = [t for t in single if before["t" + t.identity] == unheard]
    for line in missing[:1]:
        late = ours(
            "",
            identity="late",
            position=99,
            kind=line.kind,
            keys=line.keys,
            amount_minor=line.amount_minor,
            unit=line.unit,
        )
        then = compare(lines, [*operations, late], RULES)
        after = names(then)
        assert after["t" + line.identity][0] in (Verdict.MATCHED, Verdict.MATCHED_TIMING)
        assert after["olate"] == after["t" + line.identity]
        assert {key for key in before if before[key] != after[key]} == {"t" + line.identity}
        for unit, bridge in then.bridges.items():
            more = line.amount_minor if unit == line.unit else 0
            assert bridge.ours_minor == found.bridges[unit].ours_minor + more
            assert bridge.theirs_minor == found.bridges[unit].theirs_minor
            moved = (
                bridge.buckets[Verdict.MISSING] - found.bridges[unit].buckets[Verdict.MISSING]
            )
            assert moved == -more


def second_opinion(  # noqa: C901, PLR0912, PLR0915 - one plain reading of the rules, on purpose
    lines: list[TheirItem], operations: list[OurItem]
) -> dict[str, tuple[str, str]]:
    """A naive dict by key, one key only, that shares no code with the comparison."""
    said: dict[str, tuple[str, str]] = {}
    book: dict[tuple[str, str | None], OurItem] = {}
    seen: set[tuple[str, str | None]] = set()
    why = {"received": "received_unprocessed", "dead_letter": "in_dead_letter", "done": ""}
    wait = {"charge": timedelta(hours=2), "refund": timedelta(0)}
    for o in operations:
        if o.kind == "fee":
            said["o" + o.identity] = ("out_of_scope", "")
        elif not o.keys[0]:
            said["o" + o.identity] = ("not_comparable", "no_key")
        elif (o.kind, o.keys[0]) in book:
            said["o" + o.identity] = ("duplicate_ours", "")
        else:
            book[o.kind, o.keys[0]] = o
    for t in lines:
        name, key = "t" + t.identity, (t.kind, t.keys[0])
        match = book.get(key)
        young = (
            t.occurred_at is not None
            and t.occurred_at + wait.get(t.kind, END - END) > RULES.as_of
        )
        if t.quarantined:
            said[name] = ("not_comparable", "quarantined")
        elif t.kind == "fee":
            said[name] = ("out_of_scope", "")
        elif not t.keys[0]:
            said[name] = ("not_comparable", "no_key")
        elif key in seen:
            said[name] = ("duplicate_theirs", "")
        else:
            seen.add(key)
            if match is None:
                said[name] = ("early", "") if young else ("missing", "never_received")
                continue
            del book[key]
            if match.state != "done":
                cause = why.get(match.state, match.state)
                said[name] = ("early", "") if young else ("missing", cause)
            elif match.unit != t.unit:
                said[name] = ("currency_mismatch", "")
            elif match.amount_minor != t.amount_minor:
                close = t.kind == "refund" and abs(match.amount_minor - t.amount_minor) <= 2
                said[name] = ("matched_tolerance", "") if close else ("amount_mismatch", "")
            else:
                # Amsterdam is two hours ahead of UTC that week.
                days = [
                    (x.occurred_at + timedelta(hours=2)).date()
                    for x in (t, match)
                    if x.occurred_at
                ]
                said[name] = ("matched", "") if days[0] == days[1] else ("matched_timing", "")
            said["o" + match.identity] = said[name]
    for o in book.values():
        due = o.occurred_at + wait[o.kind]
        if o.state == "discarded":
            said["o" + o.identity] = ("out_of_scope", "discarded")
        elif due >= END:
            said["o" + o.identity] = ("in_transit", "")
        else:
            said["o" + o.identity] = ("unexpected", why.get(o.state, o.state))
    return said


@settings(max_examples=DAYS, deadline=None)
@given(SEEDS, SIZES)
def test_a_naive_second_opinion_agrees_on_every_day(seed: int, size: int) -> None:
    lines, operations, _ = generated_day(seed, size, keys=1)
    found = names(compare(lines, operations, RULES))
    said = {item: (verdict.value, cause.value) for item, (verdict, cause) in found.items()}
    assert said == second_opinion(lines, operations)
