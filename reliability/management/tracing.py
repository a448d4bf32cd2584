"""What happened to a key: each claim it leads to, told across the layers, oldest first."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import Q

from reliability.management.printing import amount
from reliability.models import (
    Attempt,
    AuditEntry,
    DeadLetter,
    Delivery,
    Discrepancy,
    Job,
    ProcessedKey,
    Receipt,
    StatementLine,
    Tenant,
    Verdict,
)
from reliability.models.finding import Rows, claims_named

CLAIMS_MAX = 50
EACH_MAX = 200
"""Rows of one kind that a story tells."""

Layer = Literal["claim", "work", "compare", "operator"]


@dataclass(frozen=True)
class Moment:
    """One thing that happened; ``by`` is the layer, or the person, that did it."""

    at: datetime
    by: Layer
    what: str
    detail: str = ""


def claims_of(text: str, tenant: Tenant | None) -> list[ProcessedKey]:
    """Return the claims a text leads to, newest first; of every tenant where none is given."""

    def scoped(rows: Rows) -> Rows:
        return rows.filter(tenant=tenant) if tenant else rows

    return claims_named(text, scoped, most=CLAIMS_MAX)


def lines_naming(text: str, tenant: Tenant | None) -> list[dict[str, Any]]:
    """Return the statement lines that carry the text as their reference."""
    lines = StatementLine.objects.filter(reference=text).select_related("statement__source")
    return [
        {
            "source": line.statement.source.slug,
            "day": line.statement.day.isoformat(),
            "line": line.position,
            "kind": line.kind,
        }
        for line in (lines.filter(tenant=tenant) if tenant else lines)[:EACH_MAX]
    ]


def told(key: ProcessedKey) -> dict[str, Any]:
    """Return a claim with its job's figures and its story."""
    job: Job | None = getattr(key, "job", None)
    moments = [*_arrivals(key), *(_work(job) if job else ()), *_compared(key)]
    doing = f"{key.operation_class} {key.operation_reference}" if key.operation_class else ""
    return {
        "tenant": key.tenant.slug,
        "source": key.source.slug,
        "key": key.key,
        "kind": key.kind,
        "operation": doing,
        "amount": amount(key.amount_minor, key.currency, key.exponent),
        "downstream_key": key.downstream_key,
        "job": str(job.public_id) if job else "",
        "state": job.state if job else "purged" if key.purged_at else "absorbed",
        "held": job.held if job else "",
        "starts": job.starts if job else 0,
        "crashes": job.crashes if job else 0,
        "story": [asdict(one) for one in sorted(moments, key=lambda one: one.at)],
    }


def _arrivals(key: ProcessedKey) -> Iterator[Moment]:
    siblings = Q(key=key)
    if key.operation_class:
        siblings |= Q(
            key__source_id=key.source_id, key__absorbed=True,
            key__operation_class=key.operation_class,
            key__operation_reference=key.operation_reference,
        )  # fmt: skip
    receipts = Receipt.objects.filter(siblings).select_related("key", "delivery")
    for receipt in receipts.order_by("at", "pk")[:EACH_MAX]:
        other = f" as {receipt.key.key}" if receipt.key_id != key.pk else ""
        yield Moment(receipt.at, "claim", f"{receipt.verdict}{other}", _how(receipt.delivery))


def _how(delivery: Delivery | None) -> str:
    if delivery is None:
        return "enqueued"
    return f"delivery {delivery.public_id}, answered {delivery.answer}"


def _work(job: Job) -> Iterator[Moment]:
    for one in Attempt.objects.filter(job=job).order_by("number", "pk")[:EACH_MAX]:
        error = ": ".join(filter(None, (one.error_type, one.message)))
        yield Moment(one.ended_at, "work", f"start {one.number} {one.outcome}", error)
    letters = list(DeadLetter.objects.filter(job=job).order_by("round")[:EACH_MAX])
    for letter in letters:
        buried = f"buried as DL-{letter.pk}, {letter.outcome}"
        yield Moment(letter.buried_at, "work", buried, letter.reason)
    yield from _acts(letters)
    if job.state == Job.State.RUNNING and job.started_at:
        yield Moment(job.started_at, "work", "started, running now", job.worker)


def _acts(letters: list[DeadLetter]) -> Iterator[Moment]:
    named = Q()
    for letter in letters:
        public_id = str(letter.public_id)
        named |= Q(about_id=public_id) | Q(facts__members__contains=[public_id])
    if not letters:
        return
    entries = AuditEntry.objects.filter(named, about="dead letter", tenant=letters[0].tenant)
    for entry in entries.order_by("number")[:EACH_MAX]:
        yield Moment(entry.at, "operator", f"{entry.act} by {entry.actor}", entry.reason)


def _compared(key: ProcessedKey) -> Iterator[Moment]:
    verdicts = Verdict.objects.filter(operation__key=key, report__current=True)
    for one in verdicts.select_related("report")[:EACH_MAX]:
        said = f"{one.verdict} in the report of {one.report.day}"
        yield Moment(one.report.created_at, "compare", said, one.cause)
    if not key.operation_class:
        return
    rows = Discrepancy.objects.filter(
        source_id=key.source_id, operation_class=key.operation_class,
        reference=key.operation_reference,
    )  # fmt: skip
    for row in rows[:EACH_MAX]:
        yield Moment(row.opened_at, "compare", f"discrepancy {row.verdict}", row.cause)
        if row.closed_at:
            closed = f"discrepancy {row.status} by {row.closed_by}"
            yield Moment(row.closed_at, "operator", closed, row.closed_reason)
