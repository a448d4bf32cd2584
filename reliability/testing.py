"""For hosts' own tests: does a handler's effect happen once, whatever happens around it?"""

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.claim.enqueue import Accepted, Duplicate, enqueue
from reliability.handlers import DedupeWindow, Kind, ProviderHeader, UniqueConstraint, find
from reliability.models import Job, Tenant
from reliability.work.attempt import attempt
from reliability.work.batch import Ready, prepare
from reliability.work.effects import Effects
from reliability.work.lease import take, take_alone
from reliability.work.outside import run_outside_one
from reliability.work.rescue import take_back
from reliability.work.settle import Failed

TENANT = "testing"
NOT_EFFECTS = {"reliability", "contenttypes", "sessions", "admin"}
"""Apps whose rows are bookkeeping, not what a handler is for."""

Look = Callable[[], object]


def rows_written() -> object:
    """Return a digest of every row in the host's tables: what a local handler has effects on."""
    digests = []
    with sql.database().cursor() as cursor:
        for model in apps.get_models():
            if model._meta.app_label in NOT_EFFECTS or not model._meta.managed:  # noqa: SLF001 - documented
                continue
            table = sql.database().ops.quote_name(model._meta.db_table)  # noqa: SLF001 - documented
            cursor.execute(
                f"SELECT md5(string_agg(r::text, ',' ORDER BY r::text)) FROM {table} r"  # noqa: S608 - a table's own name
            )
            digests.append((model._meta.label, cursor.fetchone()[0]))  # noqa: SLF001 - documented
    return digests


def assert_effectively_once(
    kind: str, event: Any = None, *, effects: Look | None = None
) -> None:
    """Work one event three times and fail unless its effect happened once.

    First the worker is lost between effect and completion, then the sweep starts the job again as
    it would, then the event comes again. ``event`` is the payload. ``effects`` returns what
    happened in the world, as anything that can be compared; by default the rows of the host's
    tables, so a kind whose effect is elsewhere must bring it. Needs a test database in which
    nothing else is due. Raises ``AssertionError`` that says which of the three took effect again.
    """
    declared = find(kind)
    assert declared is not None, f"{kind!r} has no handler here"
    if effects is None and declared.queue == "outside":
        raise ValueError(
            f"{kind!r} has its effect elsewhere: pass effects=, what happened there."
        )
    look = effects or rows_written
    trial = _Trial(declared, str(uuid.uuid4()), event)
    before = look()
    trial.enqueue()
    first = trial.lose_the_worker_after_the_effect()
    crashed = look()
    trial.start_again()
    once = look()
    assert once != before, f"{kind!r} had no effect that can be seen"
    if declared.queue == "local":
        assert crashed == before, f"{kind!r}: a worker lost before completion left rows behind"
    assert crashed in (before, once), f"{kind!r}: after a lost worker it took effect again"
    trial.repeat(first)
    assert look() == once, f"{kind!r}: a repeat took effect again"


@dataclass
class _Trial:
    kind: Kind
    key: str
    payload: Any

    def enqueue(self) -> Accepted | Duplicate:
        Tenant.objects.get_or_create(slug=TENANT, defaults={"name": "Testing"})
        taken = enqueue(self.kind.name, key=self.key, tenant=TENANT, payload=self.payload)
        assert isinstance(taken, Accepted | Duplicate), f"{self.key!r} was absorbed"
        return taken

    def job(self) -> Job:
        return Job.objects.get(key__key=self.key, kind=self.kind.name)

    def lose_the_worker_after_the_effect(self) -> Ready:
        """Start the job, have its effect, and vanish; the sweep finds it when its lease is over."""
        [ready] = prepare(take(self.kind.queue, limit=1))
        assert ready.job.id == self.job().pk, (
            "other jobs are due: work them before this assertion"
        )
        start = Effects(ready.job, ready.kind)
        assert start.begin()
        self._run(replace(ready, event=replace(ready.event, start=start)), keep=False)
        ended = timezone.now() - timedelta(seconds=1)
        Job.objects.filter(pk=ready.job.id).update(lease_expires_at=ended)
        with transaction.atomic(using=sql.database().alias):
            take_back([self.job()])
        return ready

    def start_again(self) -> None:
        """Work the job as a worker would; one that must not be repeated is a letter by now."""
        if leased := take_alone(self.kind.queue):
            for ready in prepare([leased]):
                run_outside_one(ready)
        job = self.job()
        fates = {"done"} if self.kind.repeatable else {"done", "dead"}
        last = job.attempts.order_by("-pk").first()
        assert job.state in fates, (
            f"the second start ended {job.state}: {last and last.message}"
        )

    def repeat(self, first: Ready) -> None:
        """Bring the event again: to the claim, and past it where downstream recognises it."""
        assert isinstance(self.enqueue(), Duplicate)
        match self.kind.sink:
            case UniqueConstraint() | ProviderHeader() | DedupeWindow(record="after"):
                if self.kind.repeatable:
                    start = Effects(first.job, first.kind)
                    event = replace(first.event, start=start)
                    self._run(replace(first, event=event), keep=True)
            case _:
                pass

    def _run(self, ready: Ready, *, keep: bool) -> None:
        """Run the handler, in a transaction where its rows are its effect."""
        with self._transaction():
            verdict = attempt(ready.job, ready.kind, ready.event, own_job=True)
            if self.kind.queue == "local" and not keep:
                transaction.set_rollback(True, using=sql.database().alias)
        if isinstance(verdict, Failed):
            raise AssertionError(  # noqa: TRY004 - what a test's assertion raises
                f"{self.kind.name!r} failed: {verdict.error!r}"
            ) from verdict.error

    def _transaction(self) -> AbstractContextManager[None]:
        if self.kind.queue == "outside":
            return nullcontext()
        return transaction.atomic(using=sql.database().alias)
