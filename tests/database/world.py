"""Arrange with the real verbs: a tenant, a source with a secret, jobs, workers' steps."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from reliability import handlers
from reliability.claim.accept import Asked, Fate, claim
from reliability.claim.enqueue import Accepted, enqueue
from reliability.handlers import Event, LocalTransaction, Sink
from reliability.models import Job, Source, SourceSecret, Tenant
from reliability.policy import Policy
from reliability.work.batch import prepare, run_batch
from reliability.work.confirm import confirm_due
from reliability.work.lease import Leased, take
from reliability.work.outside import run_outside_one

SECRET = "whsec_bWFkZSBmb3IgdGVzdHMgb25seSE="


def tenant(slug: str = "acme") -> Tenant:
    return Tenant.objects.get_or_create(slug=slug, defaults={"name": slug.title()})[0]


def source(slug: str = "stripe-live", *, preset: str = "stripe", of: str = "acme") -> Source:
    made = Source.objects.create(tenant=tenant(of), slug=slug, preset=preset, scheme=preset)
    SourceSecret.objects.rotate(made, SECRET, overlap_until=timezone.now())
    return made


@contextmanager
def kind(
    name: str,
    handle: Callable[[Event], Any],
    *,
    sink: Sink | None = None,
    policy: Policy | None = None,
    **declared: Any,
) -> Iterator[None]:
    """Register a kind for the length of a test."""
    handlers.handler(name, sink=sink, policy=policy, **declared)(handle)
    try:
        yield
    finally:
        handlers.unregister(name)


@contextmanager
def local(name: str, handle: Callable[[Event], Any], **declared: Any) -> Iterator[None]:
    with kind(name, handle, sink=LocalTransaction(), **declared):
        yield


def job(kind: str, key: str = "k-1", payload: Any = None) -> Job:
    """Enqueue a job that must be new, and return its row."""
    taken = enqueue(kind, key=key, tenant=tenant(), payload=payload)
    assert isinstance(taken, Accepted)
    return Job.objects.get(public_id=taken.job_id)


def take_in(at: Source, *asked: Asked) -> list[Fate]:
    return claim(at, asked)


def asked(key: str, kind: str = "stripe.charge.succeeded", **facts: Any) -> Asked:
    body = facts.pop("body", {"id": key})
    return Asked(key=key, kind=kind, queue="local", body=json.dumps(body).encode(), **facts)


def work_outside() -> None:
    """Work what is due in this thread, so that it stays in the test's transaction."""
    while ready := prepare(take("outside", limit=10)):
        for one in ready:
            run_outside_one(one)


def take_outside(limit: int) -> list[Leased]:
    return take("outside", limit=limit)


def work_one_outside() -> None:
    for one in prepare(take_outside(1)):
        run_outside_one(one)


def work_local() -> None:
    """Work what is due here and now, in batches."""
    while leased := take("local", limit=10):
        run_batch(prepare(leased))


def confirm_and_work() -> None:
    """Ask the providers about what waits for their word, then work what is due."""
    confirm_due(lambda: True)
    work_local()


def make_due(job: Job) -> None:
    """Let a job's wait be over, as time would."""
    Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - timedelta(seconds=1))


def end_lease(job: Job) -> None:
    """Let a running job's lease be over, as a lost worker would leave it."""
    end_lease_of(job.pk)


def end_lease_of(job_id: int) -> None:
    Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )


def query(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return list(cursor.fetchall()) if cursor.description else []
