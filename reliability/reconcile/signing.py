"""Signing a day off: a preparer may go first, the reviewer is another person, a version stays."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.models import AuditEntry, Discrepancy, Report
from reliability.reconcile.discrepancies import Refusal
from reliability.work.dead_letters import Act


@dataclass(frozen=True)
class Signed:
    """The report, signed or prepared."""

    report: Report


def needs_note(report: Report) -> bool:
    """Say whether signing wants an explanation: something is open, or nothing could be compared."""
    return report.completeness not in Report.JUDGED or open_on(report) > 0


def open_on(report: Report) -> int:
    """Count what is still open of the report's day."""
    found = Discrepancy.objects.open().filter(source_id=report.source_id)
    return found.filter(first_day__lte=report.day, last_day__gte=report.day).count()


def prepare(report: Report, act: Act) -> Signed | Refusal:
    """Say that the day was gone through; ``act.reason`` is the note for the reviewer."""
    return _put(
        report, act, "prepare", who="prepared_by", prepared_at=timezone.now(),
        prepared_by=act.actor, prepared_note=act.reason,
    )  # fmt: skip


def sign(report: Report, act: Act) -> Signed | Refusal:
    """Sign this version off. With anything open, ``act.reason`` must say why that is accepted.

    Refused for the person who prepared it, for a version that is no longer the current one, and
    for one that is signed already.
    """
    if needs_note(report) and not act.reason.strip():
        return Refusal("Something is still open here: say why the day is signed all the same.")
    if report.prepared_by and report.prepared_by == act.actor:
        return Refusal("Who prepared a day cannot review it: a second person signs.")
    return _put(
        report, act, "sign", who="signed_by", signed_at=timezone.now(), signed_by=act.actor,
        signed_note=act.reason,
    )  # fmt: skip


def _put(
    report: Report, act: Act, name: str, *, who: str, **changes: object
) -> Signed | Refusal:
    with transaction.atomic(using=sql.database().alias):
        fresh = Report.objects.filter(
            **{who: ""}, pk=report.pk, tenant=act.tenant, current=True, signed_at=None
        )
        if not fresh.update(**changes):
            return Refusal(_why(report))
        AuditEntry.objects.record(
            act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="report",
            about_id=str(report.public_id), reason=act.reason, day=str(report.day),
            version=report.version, inputs=bytes(report.inputs_sha256).hex(),
        )  # fmt: skip
    return Signed(Report.objects.get(pk=report.pk))


def _why(report: Report) -> str:
    now = Report.objects.filter(pk=report.pk).first()
    if now is None or not now.current:
        return "A newer version of this day exists: look at that one."
    if now.signed_at:
        return f"{now.signed_by} signed it at {now.signed_at:%Y-%m-%d %H:%M} UTC."
    return f"{now.prepared_by} prepared it before."
