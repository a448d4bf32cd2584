"""Forcing: two people let an incomplete statement be compared, and the report says so for ever."""

from dataclasses import dataclass

from django.db import transaction

from reliability import sql
from reliability.models import AuditEntry, Report
from reliability.reconcile.day import INCOMPLETE, Force, compare_day
from reliability.reconcile.discrepancies import Refusal
from reliability.work.dead_letters import Act


@dataclass(frozen=True)
class Asked:
    """The report on which the first person asked."""

    report: Report


@dataclass(frozen=True)
class Forced:
    """The new version, with its verdicts."""

    report: Report


def ask_to_force(report: Report, act: Act) -> Asked | Refusal:
    """Ask for verdicts from an incomplete statement; ``act.reason`` says why, for ever."""
    if not act.reason.strip():
        return Refusal("Say why an incomplete statement shall be compared all the same.")
    with transaction.atomic(using=sql.database().alias):
        fresh = Report.objects.filter(
            pk=report.pk, tenant=act.tenant, current=True, completeness=INCOMPLETE,
            force_asked_by="", statement__isnull=False,
        )  # fmt: skip
        if not fresh.update(force_asked_by=act.actor, force_reason=act.reason):
            return Refusal("Only a current, incomplete report can be forced, and only once.")
        _record(report, act, "ask to force", act.reason)
    return Asked(report)


def agree_to_force(report: Report, act: Act) -> Forced | Refusal:
    """Agree as the second person: the compare runs again, forced."""
    with transaction.atomic(using=sql.database().alias):
        now = Report.objects.select_for_update().filter(
            pk=report.pk, tenant=act.tenant, current=True, completeness=INCOMPLETE
        )
        asked = now.exclude(force_asked_by="").first()
        if asked is None:
            return Refusal("Nobody has asked to force this report, or a newer one exists.")
        if asked.force_asked_by == act.actor:
            return Refusal("Forcing takes a second person: who asked cannot agree.")
        force = Force(asked.force_asked_by, act.actor, asked.force_reason)
        made = compare_day(asked.source, asked.day, by=act.actor, force=force)
        _record(made, act, "force", asked.force_reason)
    return Forced(made)


def _record(report: Report, act: Act, name: str, reason: str) -> None:
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="report",
        about_id=str(report.public_id), reason=reason, day=str(report.day),
        version=report.version,
    )  # fmt: skip
