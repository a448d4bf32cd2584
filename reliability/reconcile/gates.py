"""Completeness gates: what must hold before a statement may accuse anybody of anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from reliability.currencies import money
from reliability.reconcile.formats.base import Declared, Mode, StatementError, Unit
from reliability.reconcile.tally import Tally

GateVerdict = Literal["passed", "failed", "unproven"]
Judgement = Literal["COMPLETE", "INCOMPLETE", "UNPROVEN"]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One gate's verdict, with the numbers it compared and one sentence for people."""

    name: str
    verdict: GateVerdict
    numbers: Mapping[str, str]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the source leads us to expect of this statement; ``None`` is not checked.

    ``start`` and ``end`` are the local day's midnights as instants; ``explained`` counts the
    quarantined lines a person has accounted for; ``previous`` is the day before's statement.
    """

    account: str | None = None
    currencies: frozenset[str] | None = None
    mode: Mode | None = None
    day: date | None = None
    start: datetime | None = None
    end: datetime | None = None
    explained: int = 0
    previous: Declared | None = None


def check(
    declared: Declared, tally: Tally, expected: Expected, *, size_bytes: int, as_of: datetime
) -> tuple[Gate, ...]:
    """Put one statement through every gate, in the order a person would look."""
    return (
        bytes_gate(size_bytes, None, trailer=declared.trailer),
        identity_gate(declared, tally, expected),
        counts_gate(declared, tally),
        footing_gate(declared, tally),
        continuity_gate(declared, expected.previous),
        coverage_gate(declared, tally, expected, as_of=as_of),
        parse_gate(tally, expected.explained),
    )


def judge(gates: Iterable[Gate]) -> Judgement:
    """Sum the gates up: one failed is INCOMPLETE; neither count nor balance is UNPROVEN."""
    verdicts = {gate.name: gate.verdict for gate in gates}
    if "failed" in verdicts.values():
        return "INCOMPLETE"
    proven = {verdicts.get("counts"), verdicts.get("footing")}
    return "COMPLETE" if "passed" in proven else "UNPROVEN"


def bytes_gate(size_bytes: int, error: StatementError | None, *, trailer: bool | None) -> Gate:
    """Ask for bytes that decode to their end, with the end mark the format has."""
    numbers = {"bytes": str(size_bytes)}
    if error is not None:
        return _gate("bytes", numbers, failed=str(error))
    if size_bytes == 0:
        return _gate("bytes", numbers, failed="the file is empty")
    if trailer is False:
        return _gate("bytes", numbers, failed="the end mark is missing: the file may be cut")
    mark = "with its end mark" if trailer else "the format has no end mark"
    return _gate("bytes", numbers, passed=f"{size_bytes:,} bytes read to the end, {mark}")


def identity_gate(declared: Declared, tally: Tally, expected: Expected) -> Gate:
    """Ask for our account, our currencies and our mode, as far as the statement names them."""
    currencies = {unit.currency for unit in tally.sums}
    numbers = {
        "account": f"{declared.account or 'unnamed'}, expected {expected.account or 'any'}",
        "currencies": ", ".join(sorted(currencies)) or "none",
        "mode": f"{declared.mode or 'unnamed'}, expected {expected.mode or 'any'}",
    }
    account, own = _account(declared.account), _account(expected.account)
    if account and own and account != own:
        failed = f"the statement is of account {declared.account}, not {expected.account}"
        return _gate("identity", numbers, failed=failed)
    if declared.mode and expected.mode and declared.mode != expected.mode:
        failed = f"the statement is of mode {declared.mode}, not {expected.mode}"
        return _gate("identity", numbers, failed=failed)
    if expected.currencies is not None and (odd := currencies - expected.currencies):
        failed = f"currency {min(odd)} does not belong to this source"
        return _gate("identity", numbers, failed=failed)
    if account and own:
        return _gate("identity", numbers, passed=f"account {declared.account}, as expected")
    return _gate("identity", numbers, unproven="the statement does not name its account")


def counts_gate(declared: Declared, tally: Tally) -> Gate:
    """Ask for as many rows as declared; no row at all needs a count or balances to prove it."""
    said = "none" if declared.count is None else str(declared.count)
    numbers = {"declared": said, "read": str(tally.rows)}
    if declared.count is not None:
        sentence = f"{declared.count:,} rows declared, {tally.rows:,} read"
        if declared.count != tally.rows:
            return _gate("counts", numbers, failed=sentence)
        return _gate("counts", numbers, passed=sentence)
    if tally.rows == 0 and not (declared.sums or (declared.opening and declared.closing)):
        failed = "no row, and neither a count nor balances prove that there was none"
        return _gate("counts", numbers, failed=failed)
    return _gate("counts", numbers, unproven=f"no count declared, {tally.rows:,} rows read")


def footing_gate(declared: Declared, tally: Tally) -> Gate:
    """Ask that opening + lines = closing, sums agree, and gross − fee = net on each line."""
    equations = list(_equations(declared, tally))
    numbers = {f"equation {n}": text for n, (text, _) in enumerate(equations, 1)}
    wrong = [text for text, holds in equations if not holds]
    if tally.broken_net:
        wrong.append(
            f"gross - fee is not net on {tally.broken_net} lines, first on line {tally.broken_at}"
        )
    if wrong:
        return _gate("footing", numbers, failed="; ".join(wrong))
    if numbers:
        return _gate("footing", numbers, passed="; ".join(numbers.values()))
    return _gate("footing", numbers, unproven="neither balances nor sums are declared")


def _equations(declared: Declared, tally: Tally) -> Iterable[tuple[str, bool]]:
    """Each declared figure beside the computed one, and whether they agree."""
    opening = {balance.unit: balance.minor for balance in declared.opening}
    closing = {balance.unit: balance.minor for balance in declared.closing}
    for unit in sorted({*opening, *closing}):
        if unit in opening and unit in closing:
            yield _balance_equation(
                unit, (opening[unit], closing[unit]), tally.sums.get(unit, 0)
            )
        else:
            yield f"{unit.currency} has only one of opening and closing", False
    for unit, said in sorted(declared.sums.items()):
        moved = tally.sums.get(unit, 0)
        sign = "=" if said == moved else "≠"
        yield (
            f"declared {money(said, *unit)} {sign} lines {money(moved, *unit)}",
            said == moved,
        )
    if opening or declared.sums:
        for unit in sorted(set(tally.sums) - {*opening, *closing, *declared.sums}):
            yield f"lines in {unit.currency}, for which no figure is declared", False


def _balance_equation(unit: Unit, ends: tuple[int, int], moved: int) -> tuple[str, bool]:
    start, end = ends
    holds = start + moved == end
    left = f"opening {money(start, *unit)} + lines {money(moved, *unit)}"
    return f"{left} {'=' if holds else '≠'} closing {money(end, *unit)}", holds


def continuity_gate(declared: Declared, previous: Declared | None) -> Gate:
    """Ask that this statement begins where the one before it ended."""
    if previous is None:
        return _gate("continuity", {}, unproven="there is no earlier statement to follow")
    steps = [*_sequence_step(declared, previous), *_balance_steps(declared, previous)]
    numbers = {f"step {n}": text for n, (text, _) in enumerate(steps, 1)}
    wrong = [text for text, holds in steps if not holds]
    if wrong:
        return _gate("continuity", numbers, failed="; ".join(wrong))
    if numbers:
        return _gate("continuity", numbers, passed="; ".join(numbers.values()))
    return _gate("continuity", numbers, unproven="neither balances nor numbers to follow")


def _sequence_step(declared: Declared, previous: Declared) -> Iterable[tuple[str, bool]]:
    """Numbering restarts with the year, so 1 may follow any number."""
    if declared.sequence is not None and previous.sequence is not None:
        follows = declared.sequence in (previous.sequence + 1, 1)
        verb = "follows" if follows else "does not follow"
        yield f"statement {declared.sequence} {verb} {previous.sequence}", follows


def _balance_steps(declared: Declared, previous: Declared) -> Iterable[tuple[str, bool]]:
    before = {balance.unit: balance.minor for balance in previous.closing}
    for balance in declared.opening:
        if (closed := before.get(balance.unit)) is not None:
            ends = f"closed at {money(closed, *balance.unit)}"
            text = f"{ends}, opens at {money(balance.minor, *balance.unit)}"
            yield text, closed == balance.minor


def coverage_gate(
    declared: Declared, tally: Tally, expected: Expected, *, as_of: datetime
) -> Gate:
    """Ask that the period is over and is the expected local day, and the lines lie in it."""
    numbers = {
        "expected": f"{expected.day}: {expected.start} to {expected.end}",
        "declared": f"{declared.period_start or declared.first_day or 'unsaid'} to "
        f"{declared.period_end or declared.last_day or 'unsaid'}",
    }
    if expected.start is None or expected.end is None:
        return _gate(
            "coverage", numbers, unproven="no local day is expected of this statement"
        )
    wrong = (
        _not_over(declared, expected.end, as_of)
        or _other_period(declared, expected)
        or _outside(tally, expected)
    )
    if wrong:
        return _gate("coverage", numbers, failed=wrong)
    if declared.period_end or declared.last_day:
        return _gate("coverage", numbers, passed=f"the statement covers {expected.day}")
    return _gate("coverage", numbers, unproven="the statement names no period")


def _not_over(declared: Declared, day_end: datetime, as_of: datetime) -> str:
    if as_of < day_end:
        return "the day is not over yet"
    late = declared.period_end is not None and declared.period_end > as_of
    return "the statement's period is not over yet" if late else ""


def _other_period(declared: Declared, expected: Expected) -> str:
    instants = ((declared.period_start, expected.start), (declared.period_end, expected.end))
    days = ((declared.first_day, expected.day), (declared.last_day, expected.day))
    for said, wanted in (*instants, *days):
        if said is not None and wanted is not None and said != wanted:
            return f"the statement's period has {said}, the local day has {wanted}"
    return ""


def _outside(tally: Tally, expected: Expected) -> str:
    if tally.earliest_at and expected.start and tally.earliest_at < expected.start:
        return f"a line of {tally.earliest_at} lies before the day begins at {expected.start}"
    if tally.latest_at and expected.end and tally.latest_at >= expected.end:
        return f"a line of {tally.latest_at} lies after the day ends at {expected.end}"
    for day in (tally.first_day, tally.last_day):
        if day and expected.day and day != expected.day:
            return f"a line is of {day}, not of {expected.day}"
    return ""


def parse_gate(tally: Tally, explained: int) -> Gate:
    """Ask that every quarantined row has been explained by a person."""
    numbers = {"quarantined": str(tally.quarantined), "explained": str(explained)}
    if tally.quarantined > explained:
        left = tally.quarantined - explained
        rows = "row is" if left == 1 else "rows are"
        failed = f"{left} quarantined {rows} unexplained; first {tally.first_refusal}"
        return _gate("parse", numbers, failed=failed)
    return _gate("parse", numbers, passed=f"{tally.lines:,} lines read, none unexplained")


def _account(text: str | None) -> str:
    return "".join((text or "").split()).upper()


def _gate(
    name: str,
    numbers: Mapping[str, str],
    *,
    passed: str = "",
    failed: str = "",
    unproven: str = "",
) -> Gate:
    verdict: GateVerdict = "failed" if failed else "passed" if passed else "unproven"
    sentence = failed or passed or unproven
    return Gate(name=name, verdict=verdict, numbers=numbers, sentence=sentence)
