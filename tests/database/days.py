"""Builds a source's days: operations of ours through the real claim, statements as files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

from reliability.claim.accept import Asked, claim
from reliability.handlers import MappedOperation
from reliability.models import DeadLetter, Discrepancy, Job, Report, Source, Statement
from reliability.reconcile.day import compare_day
from reliability.reconcile.statement import Refused, import_statement, receive
from tests.database import world

DAY = date(2026, 10, 14)
"""In Amsterdam: 13 October 22:00 to 14 October 22:00 UTC."""
NOON = datetime(2026, 10, 14, 10, tzinfo=UTC)
MORNING_AFTER = datetime(2026, 10, 15, 6, tzinfo=UTC)
HEADER = "id,kind,reference,amount,currency,occurred"
MAPPED: dict[str, Any] = {
    "columns": {
        "id": "id",
        "kind": "kind",
        "amount": "amount",
        "currency": "currency",
        "occurred": "occurred",
    },
    "references": {"reference": "reference"},
    "rows": [{"column": "id", "equals": "ROWS", "is": "count", "figure": "amount"}],
}
_numbers = count(1)


@dataclass(frozen=True)
class Row:
    """One row of a statement; the amount in major units, as the file has it."""

    reference: str
    amount: str = "10.00"
    kind: str = "charge"
    currency: str = "EUR"
    occurred: str = "2026-10-14T12:00:00+02:00"
    id: str = ""


def a_source(slug: str = "shop", *, of: str = "acme", **facts: Any) -> Source:
    """Make a source in Amsterdam whose file carries its number of rows."""
    made = world.source(slug, of=of)
    usual: dict[str, Any] = {
        "zone": "Europe/Amsterdam",
        "statement_format": "mapped-csv",
        "statement_options": MAPPED,
        "statement_kinds": ["charge", "refund"],
        "created_at": datetime(2026, 10, 1, tzinfo=UTC),
    }
    Source.objects.filter(pk=made.pk).update(**usual | facts)
    made.refresh_from_db()
    return made


def a_file(*rows: Row, declared: int | None = None) -> bytes:
    """Write a statement; ``declared`` is the number of rows it claims to have."""
    lines = [
        f"{row.id or row.reference + '-t'},{row.kind},{row.reference},"
        f"{row.amount},{row.currency},{row.occurred}"
        for row in rows
    ]
    total = len(rows) if declared is None else declared
    return "\n".join([HEADER, *lines, f"ROWS,,,{total},,", ""]).encode()


def give(source: Source, content: bytes, day: date = DAY) -> Statement | Refused:
    artefact = receive(source, name="day.csv", content=content, by="mara")
    return import_statement(artefact, day)


def report(source: Source, *rows: Row, day: date = DAY, declared: int | None = None) -> Report:
    """Give the day a statement and compare."""
    given = give(source, a_file(*rows, declared=declared), day)
    assert isinstance(given, Statement), given
    return compare_day(source, day, by="mara")


def operation(
    source: Source,
    reference: str,
    amount_minor: int | None = 1000,
    *,
    state: str = "done",
    **facts: Any,
) -> Job:
    """Take an event in under an operation and bring its job to a state."""
    usual: dict[str, Any] = {
        "operation_class": "charge",
        "currency": "EUR" if amount_minor is not None else None,
        "exponent": 2 if amount_minor is not None else None,
        "occurred_at": NOON,
    }
    mapped = MappedOperation(reference=reference, amount_minor=amount_minor, **usual | facts)
    key = f"evt_{next(_numbers)}"
    [fate] = claim(
        source,
        [Asked(key=key, kind="stripe.charge.succeeded", body=b"{}", operation=mapped)],
    )
    assert fate.job_id, fate
    job = Job.objects.get(public_id=fate.job_id)
    bring(job, state)
    return job


def bring(job: Job, state: str) -> None:
    """Move a job by the legal steps, as work/ would."""
    jobs = Job.objects.filter(pk=job.pk)
    match state:
        case "retrying":
            jobs.update(starts=1)
        case "dead" | "discarded":
            jobs.update(state="dead", starts=5)
            a_letter(job)
            if state == "discarded":
                jobs.update(state="discarded")
        case "done" | "ready":
            jobs.update(state=state)
    job.refresh_from_db()


def a_letter(job: Job) -> DeadLetter:
    return DeadLetter.objects.create(
        tenant_id=job.tenant_id, source_id=job.source_id, job=job, round=1, kind=job.kind,
        outcome="failed", reason="5 of 5 attempts failed", error_type="LedgerDown",
        buried_at=NOON,
    )  # fmt: skip


def told(report: Report) -> set[tuple[str, str, str]]:
    """Return (reference, verdict, cause) of everything the report speaks of."""
    found = report.verdicts.values_list("reference", "verdict", "cause")
    return {(reference or "", verdict, cause) for reference, verdict, cause in found}


def open_ones(source: Source) -> set[tuple[str, str]]:
    found = Discrepancy.objects.open().filter(source=source)
    return set(found.values_list("reference", "verdict"))
