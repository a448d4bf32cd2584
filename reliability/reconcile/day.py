"""One source, one local day: gates first, then the compare, frozen as a versioned report."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.errors import ReliabilityError
from reliability.models import Artefact, Report, Source, Statement
from reliability.reconcile import local_day
from reliability.reconcile.discrepancies import carry
from reliability.reconcile.figures import declared_from_json, tally_from_json
from reliability.reconcile.formats.base import Declared, StatementError
from reliability.reconcile.gates import Expected, Gate, bytes_gate, check, judge
from reliability.reconcile.statement import latest, one_at_a_time, scope_for
from reliability.reconcile.totals import Bucket, bridge_of, counts_of

RULE_VERSION = 1
#: A plan that suits every size suits none, and hashing a million rows wants memory and time.
BIG_STATEMENT = (
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL work_mem = '64MB'; "
    "SET LOCAL statement_timeout = '15min'"
)
ABSENT, FORCED = Report.Completeness.ABSENT, Report.Completeness.FORCED
INCOMPLETE = Report.Completeness.INCOMPLETE


class NothingToCompare(ReliabilityError):
    """There is no statement yet and none is overdue, or the source compares nothing."""


@dataclass(frozen=True)
class Force:
    """Two people who want verdicts from an incomplete statement, and why."""

    asked_by: str
    agreed_by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """The day as this report sees it."""

    source: Source
    day: date
    starts: datetime
    ends: datetime
    now: datetime
    statement: Statement | None
    before: Report | None
    """The newest report of the due day before."""
    current: Report | None
    force: Force | None


@dataclass(frozen=True)
class _NextId:
    id: int


def compare_day(source: Source, day: date, *, by: str, force: Force | None = None) -> Report:
    """Compare a day's newest statement with our operations and return the current report.

    One transaction, serial per source. The same inputs again change nothing; other inputs make a
    new version. Missing and unexpected are withheld while a gate fails, unless forced. Raises
    ``NothingToCompare`` where no statement is there and none is overdue, ``TryAgain`` while another
    compare of the source runs, and ``ValueError`` for a force that names one person only.
    """
    _check(force)
    with transaction.atomic(using=sql.database().alias):
        source = one_at_a_time(source.pk)
        frame = _frame(source, day, force)
        gates = _gates(frame)
        completeness = _completeness(frame, gates)
        return _frozen(frame, gates, completeness, by)


def _check(force: Force | None) -> None:
    if force is None:
        return
    if not force.reason.strip():
        raise ValueError("Say why an incomplete statement shall be compared all the same.")
    if force.asked_by == force.agreed_by or not force.agreed_by:
        raise ValueError("Forcing takes a second person: who asks cannot agree.")


def _frame(source: Source, day: date, force: Force | None) -> _Frame:
    starts, ends = local_day.bounds(day, source.zone)
    reports = Report.objects.filter(source=source, current=True)
    current = reports.filter(day=day).first()
    before = local_day.due_before(day, source.statement_options)
    statement = latest(source, day)
    if force is None and current and current.completeness == FORCED:
        force = _kept_force(current, statement)
    return _Frame(
        source=source,
        day=day,
        starts=starts,
        ends=ends,
        now=timezone.now(),
        statement=statement,
        before=reports.filter(day=before).select_related("statement").first(),
        current=current,
        force=force,
    )


def _kept_force(current: Report, statement: Statement | None) -> Force | None:
    """Keep a force for the statement it was given for; a revision has to stand on its own."""
    if statement is None or current.statement_id != statement.pk:
        return None
    return Force(current.force_asked_by, current.forced_by, current.force_reason)


def _gates(frame: _Frame) -> tuple[Gate, ...]:
    if frame.statement is None:
        return _gates_of_a_refusal(frame)
    statement, source = frame.statement, frame.source
    currencies = source.statement_options.get("currencies")
    before = frame.before.statement if frame.before else None
    expected = Expected(
        account=source.account or None,
        currencies=frozenset(currencies) if currencies else None,
        mode="test" if source.mode == Source.Mode.TEST else "live",
        day=frame.day,
        start=frame.starts,
        end=frame.ends,
        previous=_declared(before) if before else None,
    )
    return check(
        _declared(statement),
        tally_from_json(statement.computed),
        expected,
        size_bytes=statement.artefact.size_bytes,
        as_of=frame.now,
    )


def _declared(statement: Statement) -> Declared:
    return declared_from_json(statement.declared)


def _gates_of_a_refusal(frame: _Frame) -> tuple[Gate, ...]:
    """A file that could not be read at all fails the first gate; no file at all has no gates."""
    refused = Artefact.objects.filter(source=frame.source, day=frame.day).exclude(refused="")
    artefact = refused.order_by("-received_at").first()
    if artefact is None:
        return ()
    error = StatementError(0, artefact.refused, "then upload it again")
    return (bytes_gate(artefact.size_bytes, error, trailer=None),)


def _completeness(frame: _Frame, gates: Sequence[Gate]) -> str:
    if not frame.source.statement_kinds:
        raise NothingToCompare(
            f"{frame.source.slug} declares no operation classes to compare; "
            "set its statement kinds."
        )
    if not gates:
        due_at = due_by(frame.source, frame.day)
        if frame.now < due_at:
            raise NothingToCompare(
                f"No statement of {frame.source.slug} for {frame.day} yet; "
                f"it is due by {due_at:%Y-%m-%d %H:%M} UTC."
            )
        return ABSENT
    judged = judge(gates).lower()
    return FORCED if judged == INCOMPLETE and frame.force and frame.statement else judged


def due_by(source: Source, day: date) -> datetime:
    """Return the instant by which a day's statement is expected."""
    _, ends = local_day.bounds(day, source.zone)
    return ends + timedelta(hours=source.statement_deadline_hours)


def _frozen(frame: _Frame, gates: Sequence[Gate], completeness: str, by: str) -> Report:
    alias = sql.database().alias
    report_id = sql.rows("next_report_id", _NextId)[0].id
    point = transaction.savepoint(using=alias)
    buckets = _compared(frame, report_id, completeness)
    inputs = _digest(frame, gates, completeness, buckets)
    if frame.current and bytes(frame.current.inputs_sha256) == inputs:
        transaction.savepoint_rollback(point, using=alias)
        return frame.current
    transaction.savepoint_commit(point, using=alias)
    Report.objects.filter(source=frame.source, day=frame.day, current=True).update(
        current=False
    )
    report = _written(frame, gates, completeness, report_id=report_id, by=by)
    report.counts = counts_of(buckets, _quarantined(frame))
    report.bridge = bridge_of(buckets)
    report.inputs_sha256 = inputs
    report.save(force_insert=True)
    carry(report, withheld=completeness not in Report.JUDGED)
    return report


def _compared(frame: _Frame, report_id: int, completeness: str) -> list[Bucket]:
    if frame.statement is None:
        return []
    sql.command(BIG_STATEMENT)
    asked: dict[str, Any] = {
        "scope": json.dumps(_scope(frame.source)),
        "report_id": report_id,
        "tenant_id": frame.source.tenant_id,
        "source_id": frame.source.pk,
        "statement_id": frame.statement.pk,
        "day": frame.day,
        "zone": frame.source.zone,
        "starts": frame.starts,
        "ends": frame.ends,
        "carried": _carried_from(frame),
        "as_of": frame.now,
        "withheld": completeness not in Report.JUDGED,
    }
    buckets = sql.rows_planned_anew("compare_day", Bucket, **asked)
    if any("grouped" in one for one in _scope(frame.source)):
        buckets += sql.rows_planned_anew("compare_groups", Bucket, **asked)
    return buckets


def _scope(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "operation_class": scope.operation_class,
            "sign": scope.sign,
            "grace": f"{int(scope.grace.total_seconds())} seconds",
            "tolerance_minor": scope.tolerance_minor,
            # Named only where it is so: a report made before there were groups keeps its digest.
            **({"grouped": True} if scope.grouped else {}),
        }
        for scope in scope_for(source).classes.values()
    ]


def _carried_from(frame: _Frame) -> datetime:
    """Look back as far as the day before may have left operations in transit.

    Without a report that says so nothing is carried: what came before is not known.
    """
    before = frame.before
    if before is None or before.completeness not in Report.JUDGED:
        return frame.starts
    graces = [scope.grace for scope in scope_for(frame.source).classes.values()]
    return before.ends_at - max(graces, default=timedelta(0))


def _digest(
    frame: _Frame, gates: Sequence[Gate], completeness: str, buckets: Sequence[Bucket]
) -> bytes:
    """Hash everything the report follows from: file, rules, gates, and each item as it stood."""
    statement = frame.statement
    said = {
        "file": bytes(statement.artefact.sha256).hex() if statement else "",
        "statement": statement.pk if statement else None,
        "rules": [RULE_VERSION, frame.source.zone, _scope(frame.source)],
        "gates": [asdict(gate) | {"numbers": dict(gate.numbers)} for gate in gates],
        "completeness": completeness,
        "force": asdict(frame.force) if frame.force else None,
        "buckets": [asdict(bucket) for bucket in buckets],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).digest()


def _written(
    frame: _Frame, gates: Sequence[Gate], completeness: str, *, report_id: int, by: str
) -> Report:
    force = frame.force if completeness == FORCED else None
    return Report(
        pk=report_id,
        tenant_id=frame.source.tenant_id,
        source=frame.source,
        day=frame.day,
        version=frame.current.version + 1 if frame.current else 1,
        starts_at=frame.starts,
        ends_at=frame.ends,
        statement=frame.statement,
        completeness=completeness,
        gates=[asdict(gate) | {"numbers": dict(gate.numbers)} for gate in gates],
        rule_version=RULE_VERSION,
        created_at=frame.now,
        created_by=by,
        force_asked_by=force.asked_by if force else "",
        forced_by=force.agreed_by if force else "",
        force_reason=force.reason if force else "",
    )


def _quarantined(frame: _Frame) -> int:
    return int(frame.statement.computed.get("quarantined", 0)) if frame.statement else 0
