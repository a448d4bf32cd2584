"""What a file would change, found by doing it and taking it back."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import transaction

from reliability import sql
from reliability.models import Artefact, Discrepancy, Report
from reliability.reconcile.changes import Change, changes
from reliability.reconcile.day import compare_day
from reliability.reconcile.statement import Refused, import_statement

PREVIEW = "preview"


@dataclass(frozen=True)
class Preview:
    """The report as it would be; ``unchanged`` says that nothing would happen at all."""

    completeness: str
    counts: dict[str, int]
    gates: list[Any]
    lines: int
    revision: int
    opened: int
    closed: int
    told_differently: list[Change]
    unchanged: bool


def preview(artefact: Artefact, day: date) -> Preview | Refused:
    """Read and compare as an upload does, in a transaction that is rolled back.

    The same code as the real thing, so what is shown is what would be kept. A refusal stays with
    the artefact. Raises as ``compare_day``.
    """
    with transaction.atomic(using=sql.database().alias):
        read = import_statement(artefact, day)
        if isinstance(read, Refused):
            return read
        before = _open(artefact)
        current = Report.objects.filter(source=artefact.source, day=day, current=True).first()
        report = compare_day(artefact.source, day, by=PREVIEW)
        after = _open(artefact)
        found = Preview(
            completeness=report.completeness,
            counts=dict(report.counts),
            gates=list(report.gates),
            lines=read.line_count,
            revision=read.revision,
            opened=len(after - before),
            closed=len(before - after),
            told_differently=changes(current, report) if current else [],
            unchanged=current is not None and current.pk == report.pk,
        )
        transaction.set_rollback(True, using=sql.database().alias)
    return found


def _open(artefact: Artefact) -> set[int]:
    found = Discrepancy.objects.open().filter(source_id=artefact.source_id)
    return set(found.values_list("pk", flat=True))
