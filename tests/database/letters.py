"""Builds what an alert looks at: a tenant, its sources, and dead letters by the thousand."""

from __future__ import annotations

from datetime import datetime
from itertools import count

from django.utils import timezone

from reliability.models import DeadLetter, Job, ProcessedKey, Source, Tenant

_numbers = count(1)
BATCH = 2_000


def a_tenant(slug: str = "acme") -> Tenant:
    return Tenant.objects.create(slug=slug, name=slug.title())


def a_source(tenant: Tenant, slug: str = "stripe-live", *, zone: str = "UTC") -> Source:
    return Source.objects.create(tenant=tenant, slug=slug, scheme="stripe", zone=zone)


def accepted_keys(
    source: Source, number: int, *, at: datetime | None = None
) -> list[ProcessedKey]:
    """Claim keys without any work behind them."""
    keys = [
        ProcessedKey(
            tenant_id=source.tenant_id,
            source=source,
            key=(key := f"evt_{next(_numbers)}"),
            kind="stripe.charge.succeeded",
            downstream_key=key,
            body_sha256=bytes(32),
            claimed_at=at or timezone.now(),
        )
        for _ in range(number)
    ]
    return ProcessedKey.objects.bulk_create(keys, batch_size=BATCH)


def jobs_of(keys: list[ProcessedKey], state: Job.State) -> list[Job]:
    jobs = [
        Job(
            tenant_id=key.tenant_id,
            source_id=key.source_id,
            key=key,
            kind=key.kind,
            queue="jobs",
            state=state,
            run_at=key.claimed_at,
            created_at=key.claimed_at,
        )
        for key in keys
    ]
    return Job.objects.bulk_create(jobs, batch_size=BATCH)


def dead_letters(source: Source, number: int, *, at: datetime | None = None) -> None:
    """Bury new letters, each with its key and job; one event each."""
    buried_at = at or timezone.now()
    letters = [
        DeadLetter(
            tenant_id=job.tenant_id,
            source_id=job.source_id,
            job=job,
            round=1,
            kind=job.kind,
            outcome=DeadLetter.Outcome.FAILED,
            reason="5 of 5 attempts failed",
            error_type="LedgerDown",
            message="card 4242424242424242 of jane.doe@customer.example",
            amount_minor=1_999,
            currency="EUR",
            exponent=2,
            buried_at=buried_at,
        )
        for job in jobs_of(accepted_keys(source, number, at=buried_at), Job.State.DEAD)
    ]
    DeadLetter.objects.bulk_create(letters, batch_size=BATCH)


def close_letters(source: Source, number: int) -> None:
    """Close the oldest open letters."""
    oldest = DeadLetter.objects.open().filter(source=source).order_by("pk")[:number]
    DeadLetter.objects.filter(pk__in=list(oldest.values_list("pk", flat=True))).update(
        status=DeadLetter.Status.DISCARDED, closed_at=timezone.now()
    )
