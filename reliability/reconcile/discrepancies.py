"""What a compare found and a person has to close: opened, carried, closed, opened again."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from psycopg.types.json import Jsonb

from reliability import sql
from reliability.conf import conf
from reliability.models import AuditEntry, Discrepancy, Report
from reliability.reconcile.verdicts import Verdict
from reliability.work.dead_letters import Act

COMPARE = "the compare"
Family, Status, Resolution = Discrepancy.Family, Discrepancy.Status, Discrepancy.Resolution

FAMILIES: dict[str, str] = {
    Verdict.MISSING: Family.MISSING,
    Verdict.UNEXPECTED: Family.UNEXPECTED,
    Verdict.AMOUNT_MISMATCH: Family.MISMATCH,
    Verdict.CURRENCY_MISMATCH: Family.MISMATCH,
    Verdict.STATUS_MISMATCH: Family.MISMATCH,
    Verdict.FEE_MISMATCH: Family.MISMATCH,
    Verdict.DUPLICATE_THEIRS: Family.DUPLICATE,
    Verdict.DUPLICATE_OURS: Family.DUPLICATE,
    Verdict.AMBIGUOUS: Family.DUPLICATE,
}
NOT_CLOSED: dict[str, Any] = {
    "resolution": Resolution.NONE,
    "ignored_until": None,
    "closed_at": None,
    "closed_by": "",
    "closed_reason": "",
    "recover_asked_by": "",
    "recovered_by": "",
    "rule": None,
}


@dataclass(frozen=True)
class _Carried:
    id: int
    reopened: bool


@dataclass(frozen=True)
class _Closed:
    id: int
    status: str


@dataclass(frozen=True)
class Settled:
    """What one look at the open ones did."""

    closed: int
    reopened: int


@dataclass(frozen=True)
class Changed:
    """The discrepancy as it is now."""

    discrepancy: Discrepancy


@dataclass(frozen=True)
class Refusal:
    """Nothing was changed, and why, in one sentence for a person."""

    why: str


ANALYSE_FROM_VERDICTS = 500
#: What was written a moment ago is unknown to the planner, which then joins row by row. Whoever
#: analyses the table already makes no difference to the answer: nobody waits for them.
ANALYSE = "ANALYZE (SKIP_LOCKED) reliability_verdict, reliability_discrepancy"


def carry(report: Report, *, withheld: bool) -> None:
    """Open and carry what the report found, close what it contradicts; in its transaction."""
    now, families = timezone.now(), Jsonb(FAMILIES)
    many = sum(report.counts.values()) >= ANALYSE_FROM_VERDICTS
    if many:
        sql.command(ANALYSE)
    carried = sql.rows_planned_anew(
        "carry_discrepancies",
        _Carried,
        report_id=report.pk,
        families=families,
        limits=Jsonb(report.source.statement_options.get("recover_limit_minor", {})),
        alone_max=conf().recover_alone_max,
        now=now,
    )
    if many:
        sql.command(ANALYSE)
    closed = sql.rows_planned_anew(
        "close_discrepancies",
        _Closed,
        report_id=report.pk,
        families=families,
        withheld=withheld,
        now=now,
    )
    reopened = [one.id for one in carried if one.reopened]
    Discrepancy.objects.filter(pk__in=reopened).update(**NOT_CLOSED)
    _record(report, "reopen", reopened)
    _record(report, "close", [one.id for one in closed])
    ruled = sql.rows_planned_anew("apply_ignore_rules", _Closed, report_id=report.pk, now=now)
    _record(report, "ignore by rule", [one.id for one in ruled])


def _record(report: Report, act: str, ids: Sequence[int]) -> None:
    """Write what the compare itself did to discrepancies: one entry with digest and number."""
    if not ids:
        return
    members = sorted(
        str(one)
        for one in Discrepancy.objects.filter(pk__in=ids).values_list("public_id", flat=True)
    )
    AuditEntry.objects.record(
        report.tenant,
        actor=COMPARE,
        act=act,
        about="discrepancy",
        about_id=members[0] if len(members) == 1 else f"{len(members)} discrepancies",
        reason=f"{report.source} {report.day}, version {report.version}",
        count=len(members),
        digest=hashlib.sha256("\n".join(members).encode()).hexdigest(),
        members=members[: conf().selection_max],
    )


def settle() -> Settled:
    """Close what was missing and has taken effect since; reopen a recovery that died.

    At most ``conf().sweep_batch_max`` of each, passing over rows others hold.
    """
    limit = conf().sweep_batch_max
    with transaction.atomic(using=sql.database().alias):
        closed = sql.rows_planned_anew(
            "settle_discrepancies", _Closed, now=timezone.now(), limit=limit
        )
        failed = sql.rows_planned_anew("reopen_failed_recoveries", _Closed, limit=limit)
    return Settled(len(closed), len(failed))


def ignore(
    discrepancy: Discrepancy, act: Act, *, until: date | None = None
) -> Changed | Refusal:
    """Take one off the open list until a day is over; ``act.reason`` is required."""
    return _close(discrepancy, act, "ignore", status=Status.IGNORED, ignored_until=until)


def resolve(discrepancy: Discrepancy, act: Act) -> Changed | Refusal:
    """Say that one was settled by hand; ``act.reason`` is required, and names where."""
    return _close(
        discrepancy, act, "resolve", status=Status.RESOLVED, resolution=Resolution.BY_HAND
    )


def reopen(discrepancy: Discrepancy, act: Act) -> Changed | Refusal:
    """Put an ignored or settled one back on the open list."""
    closed = [Status.IGNORED, Status.RESOLVED, Status.RECOVERED]
    return move(
        discrepancy, act, "reopen", from_status=closed, status=Status.OPEN, **NOT_CLOSED
    )


def take(discrepancy: Discrepancy, act: Act) -> Changed | Refusal:
    """Make the actor the one who looks after it."""
    return move(discrepancy, act, "take", from_status=Status.values, owner=act.actor)


def comment(discrepancy: Discrepancy, act: Act) -> Changed | Refusal:
    """Leave a word on the record; ``act.reason`` is the word. Changes nothing else."""
    if not act.reason.strip():
        return Refusal("There is nothing to say.")
    return move(discrepancy, act, "comment", from_status=Status.values)


def _close(
    discrepancy: Discrepancy, act: Act, name: str, **changes: object
) -> Changed | Refusal:
    if not act.reason.strip():
        return Refusal("Say why: the reason is kept with the discrepancy and in the audit.")
    return move(
        discrepancy, act, name, from_status=[Status.OPEN], closed_at=timezone.now(),
        closed_by=act.actor, closed_reason=act.reason, **changes,
    )  # fmt: skip


def move(
    discrepancy: Discrepancy,
    act: Act,
    name: str,
    *,
    from_status: Sequence[str],
    **changes: object,
) -> Changed | Refusal:
    """Change one by compare-and-set on status and the version seen, with its audit entry."""
    with transaction.atomic(using=sql.database().alias):
        won = Discrepancy.objects.filter(
            pk=discrepancy.pk,
            tenant=act.tenant,
            status__in=from_status,
            version=discrepancy.version,
        ).update(version=F("version") + 1, **changes)
        if not won:
            return Refusal(who_was_first(discrepancy))
        AuditEntry.objects.record(
            act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="discrepancy",
            about_id=str(discrepancy.public_id), reason=act.reason,
            reference=discrepancy.reference,
        )  # fmt: skip
    return Changed(Discrepancy.objects.get(pk=discrepancy.pk))


def who_was_first(discrepancy: Discrepancy) -> str:
    """Say in one sentence why an act came too late."""
    now = Discrepancy.objects.filter(pk=discrepancy.pk).first()
    if now is None:
        return "There is no such discrepancy."
    by = f" by {now.closed_by}" if now.closed_by else ""
    return (
        f"It has moved on since this page was loaded: {now.get_status_display().lower()}{by}."
    )
