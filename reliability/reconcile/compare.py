"""The comparison itself: exactly one verdict for each of their lines and each of our operations.

The set-based statement in ``sql/`` gives the same answer for a million lines; here each rule is
one small function. Everything is held in memory: for previews, small days and as its measure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from reliability.reconcile.formats.base import Unit
from reliability.reconcile.verdicts import (
    STATE_CAUSES,
    Bridge,
    Cause,
    CompareRules,
    Comparison,
    Finding,
    OurItem,
    TheirItem,
    Verdict,
)

AnyItem = TheirItem | OurItem
_ItemT = TypeVar("_ItemT", TheirItem, OurItem)


def _both(theirs: Iterable[TheirItem], ours: Iterable[OurItem]) -> list[AnyItem]:
    return [*theirs, *ours]


def compare(
    lines: Iterable[TheirItem], operations: Iterable[OurItem], rules: CompareRules
) -> Comparison:
    """Give each line and each operation its one verdict; input order does not matter."""
    findings: list[Finding] = []
    theirs = _comparable(sorted(lines, key=_order), rules, findings)
    ours = _comparable(sorted(operations, key=_order), rules, findings)
    findings += _by_group(
        [item for item in theirs if item.kind in rules.grouped],
        [item for item in ours if item.kind in rules.grouped],
        rules,
    )
    theirs = _without_repeats([t for t in theirs if t.kind not in rules.grouped], findings)
    ours = _without_repeats([o for o in ours if o.kind not in rules.grouped], findings)
    findings += _by_keys(theirs, ours, rules)
    findings.sort(key=_finding_order)
    return Comparison(tuple(findings), _bridges(findings))


def _order(item: AnyItem) -> tuple[int, str]:
    return item.position, item.identity


def _finding_order(finding: Finding) -> tuple[int, int, str]:
    first = _both(finding.theirs, finding.ours)[0]
    return (0 if finding.theirs else 1), *_order(first)


# Items set aside before any join.


def _comparable(
    items: Sequence[_ItemT], rules: CompareRules, findings: list[Finding]
) -> list[_ItemT]:
    kept = []
    for item in items:
        aside = _aside(item, rules)
        if aside is None:
            kept.append(item)
        else:
            findings.append(_alone(item, *aside))
    return kept


def _aside(item: AnyItem, rules: CompareRules) -> tuple[Verdict, Cause] | None:
    if isinstance(item, TheirItem) and item.quarantined:
        return Verdict.NOT_COMPARABLE, Cause.QUARANTINED
    if item.kind not in rules.in_scope:
        return Verdict.OUT_OF_SCOPE, Cause.NONE
    keyed = item.group if item.kind in rules.grouped else leading_key(item.keys)
    return None if keyed else (Verdict.NOT_COMPARABLE, Cause.NO_KEY)


def _alone(item: AnyItem, verdict: Verdict, cause: Cause = Cause.NONE) -> Finding:
    if isinstance(item, TheirItem):
        return Finding(verdict, theirs=(item,), cause=cause)
    return Finding(verdict, ours=(item,), cause=cause)


def leading_key(keys: Sequence[str | None]) -> tuple[int, str] | None:
    """Give the strongest key an item has, with its level: two items that share it are one."""
    return next(((level, key) for level, key in enumerate(keys) if key), None)


def _without_repeats(items: Sequence[_ItemT], findings: list[Finding]) -> list[_ItemT]:
    """Keep the first item (by position) of each kind and leading key; repeats are a verdict."""
    first: dict[tuple[str, tuple[int, str] | None], _ItemT] = {}
    for item in items:
        if first.setdefault((item.kind, leading_key(item.keys)), item) is not item:
            theirs = isinstance(item, TheirItem)
            repeat = Verdict.DUPLICATE_THEIRS if theirs else Verdict.DUPLICATE_OURS
            findings.append(_alone(item, repeat))
    return list(first.values())


# Matching.


def _by_keys(
    theirs: Sequence[TheirItem], ours: Sequence[OurItem], rules: CompareRules
) -> Iterator[Finding]:
    """Match level by level: the first key both sides have decides."""
    for level in range(max((len(item.keys) for item in _both(theirs, ours)), default=0)):
        pairs, ambiguous = _at_level(theirs, ours, level)
        yield from (judge_match((line,), (operation,), rules) for line, operation in pairs)
        yield from (_alone(item, Verdict.AMBIGUOUS) for item in ambiguous)
        settled = {id(item) for pair in pairs for item in pair} | {id(i) for i in ambiguous}
        theirs = [line for line in theirs if id(line) not in settled]
        ours = [operation for operation in ours if id(operation) not in settled]
    yield from (judge_theirs_only(line, rules) for line in theirs)
    yield from (judge_ours_only(operation, rules) for operation in ours)


def _at_level(
    theirs: Sequence[TheirItem], ours: Sequence[OurItem], level: int
) -> tuple[list[tuple[TheirItem, OurItem]], list[AnyItem]]:
    """Find who may match whom on one key: one to one is a pair, anything more is ambiguous."""
    candidates = list(_candidates(theirs, ours, level))
    times = Counter(id(item) for pair in candidates for item in pair)
    pairs: list[tuple[TheirItem, OurItem]] = []
    ambiguous: dict[int, AnyItem] = {}
    for line, operation in candidates:
        if times[id(line)] == times[id(operation)] == 1:
            pairs.append((line, operation))
        else:
            ambiguous |= {id(line): line, id(operation): operation}
    return pairs, list(ambiguous.values())


def _candidates(
    theirs: Sequence[TheirItem], ours: Sequence[OurItem], level: int
) -> Iterator[tuple[TheirItem, OurItem]]:
    by_key: dict[tuple[str, str], list[OurItem]] = defaultdict(list)
    for operation in ours:
        if key := _key(operation, level):
            by_key[operation.kind, key].append(operation)
    for line in theirs:
        for operation in by_key.get((line.kind, _key(line, level)), ()):
            if not stronger_key_decides(line, operation, level):
                yield line, operation


def _key(item: AnyItem, level: int) -> str:
    return (item.keys[level] or "") if level < len(item.keys) else ""


def stronger_key_decides(line: TheirItem, operation: OurItem, level: int) -> bool:
    """Say whether both sides have a stronger key than ``level``: if so it decided already."""
    return any(_key(line, above) and _key(operation, above) for above in range(level))


def _by_group(
    theirs: Sequence[TheirItem], ours: Sequence[OurItem], rules: CompareRules
) -> Iterator[Finding]:
    """Match declared groups (a payout, a batch): one item on one side against many."""
    groups: dict[tuple[str, str | None], tuple[list[TheirItem], list[OurItem]]]
    groups = defaultdict(lambda: ([], []))
    for line in theirs:
        groups[line.kind, line.group][0].append(line)
    for operation in ours:
        groups[operation.kind, operation.group][1].append(operation)
    for lines, operations in groups.values():
        if not operations:
            yield from (judge_theirs_only(line, rules) for line in lines)
        elif not lines:
            yield from (judge_ours_only(operation, rules) for operation in operations)
        elif min(len(lines), len(operations)) == 1:
            yield judge_match(tuple(lines), tuple(operations), rules)
        else:
            yield from (_alone(item, Verdict.AMBIGUOUS) for item in _both(lines, operations))


# Verdicts.


def judge_match(
    theirs: tuple[TheirItem, ...], ours: tuple[OurItem, ...], rules: CompareRules
) -> Finding:
    """Judge items that are the same movement; the worst difference gives the verdict."""
    cause = _worst_state(ours)
    if cause is not Cause.NONE:
        missing = judge_theirs_only(theirs[0], rules)
        if missing.verdict is Verdict.MISSING:
            return Finding(Verdict.MISSING, theirs, ours, cause)
        return Finding(missing.verdict, theirs, ours, missing.cause)
    verdict, why = _difference(theirs, ours, rules)
    return Finding(verdict, theirs, ours, why)


def _worst_state(ours: Sequence[OurItem]) -> Cause:
    order = list(STATE_CAUSES)
    return STATE_CAUSES[max((item.state for item in ours), key=order.index)]


def _difference(
    theirs: Sequence[TheirItem], ours: Sequence[OurItem], rules: CompareRules
) -> tuple[Verdict, Cause]:
    units = {item.unit for item in _both(theirs, ours)}
    if len({unit.currency for unit in units}) > 1:
        return Verdict.CURRENCY_MISMATCH, Cause.NONE
    if len(units) > 1:
        return Verdict.AMOUNT_MISMATCH, Cause.EXPONENT
    line = theirs[0]
    off = sum(item.amount_minor for item in theirs) - sum(item.amount_minor for item in ours)
    verdict = Verdict.MATCHED
    if abs(off) > rules.tolerance_minor.get(line.kind, 0):
        verdict = Verdict.AMOUNT_MISMATCH
    elif len({item.status for item in _both(theirs, ours)} - {""}) > 1:
        verdict = Verdict.STATUS_MISMATCH
    elif _fees_differ(theirs, ours):
        verdict = Verdict.FEE_MISMATCH
    elif off:
        verdict = Verdict.MATCHED_TOLERANCE
    elif _days(theirs, rules) != _days(ours, rules):
        verdict = Verdict.MATCHED_TIMING
    return verdict, Cause.NONE


def _fees_differ(theirs: Sequence[TheirItem], ours: Sequence[OurItem]) -> bool:
    """A fee that one side does not know is no difference."""
    fees = [item.fee_minor for item in _both(theirs, ours)]
    if any(fee is None for fee in fees):
        return False
    return sum(item.fee_minor or 0 for item in theirs) != sum(
        item.fee_minor or 0 for item in ours
    )


def _days(items: Sequence[AnyItem], rules: CompareRules) -> set[date]:
    return {_local_day(item, rules) for item in items}


def _local_day(item: AnyItem, rules: CompareRules) -> date:
    if isinstance(item, TheirItem) and item.occurred_day is not None:
        return item.occurred_day
    if item.occurred_at is None:
        return rules.day
    return item.occurred_at.astimezone(ZoneInfo(rules.zone)).date()


def judge_theirs_only(line: TheirItem, rules: CompareRules) -> Finding:
    """Judge a line nobody of ours answers to: early while our grace runs, then missing.

    A line with a day only counts as having occurred at the very end of the statement.
    """
    if (line.occurred_at or rules.window_end) + _grace(line, rules) > rules.as_of:
        return _alone(line, Verdict.EARLY)
    if rules.withheld:
        return _alone(line, Verdict.NOT_COMPARABLE, Cause.WITHHELD)
    return _alone(line, Verdict.MISSING, Cause.NEVER_RECEIVED)


def judge_ours_only(operation: OurItem, rules: CompareRules) -> Finding:
    """Judge an operation no line answers to: in transit until it was due, then unexpected.

    One that a person discarded and that they do not list either is agreed: out of scope.
    """
    if operation.state == "discarded":
        return _alone(operation, Verdict.OUT_OF_SCOPE, Cause.DISCARDED)
    if operation.occurred_at + _grace(operation, rules) >= rules.window_end:
        return _alone(operation, Verdict.IN_TRANSIT)
    if rules.withheld:
        return _alone(operation, Verdict.NOT_COMPARABLE, Cause.WITHHELD)
    return _alone(operation, Verdict.UNEXPECTED, STATE_CAUSES[operation.state])


def _grace(item: AnyItem, rules: CompareRules) -> timedelta:
    return rules.grace.get(item.kind, timedelta(0))


# Totals.


def _bridges(findings: Iterable[Finding]) -> Mapping[Unit, Bridge]:
    bridges: dict[Unit, Bridge] = defaultdict(Bridge)
    for finding in findings:
        for line in finding.theirs:
            if line.unit.currency:
                bridges[line.unit].theirs_minor += line.amount_minor
                bridges[line.unit].buckets[finding.verdict] += line.amount_minor
        for operation in finding.ours:
            bridges[operation.unit].ours_minor += operation.counted_minor
            bridges[operation.unit].buckets[finding.verdict] -= operation.counted_minor
    return dict(bridges)
