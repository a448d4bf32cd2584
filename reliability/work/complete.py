"""Completion reported from outside: the destination said 202, and now that it is done."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Max

from reliability.models import DestinationAnswer, Job, Tenant
from reliability.work.destinations import KIND
from reliability.work.lease import held
from reliability.work.settle import Done, finish, finish_late


@dataclass(frozen=True)
class Completed:
    pass


@dataclass(frozen=True)
class AlreadyDone:
    pass


@dataclass(frozen=True)
class NotExpected:
    """The job moved on, or never was sent anywhere: the report changes nothing."""

    state: str


Outcome = Completed | AlreadyDone | NotExpected


def complete(public_id: UUID, tenant: Tenant, result: Any) -> Outcome | None:
    """Finish a forwarded job by its destination's word; ``None`` where there is no such job.

    Only the last start's destination can: also a little late, while nobody newer started it and
    no person decided on it. Saying it twice is no error.
    """
    job = Job.objects.filter(public_id=public_id, tenant=tenant, kind=KIND).first()
    if job is None:
        return None
    if job.state == Job.State.DONE:
        return AlreadyDone()
    sent = DestinationAnswer.objects.filter(job=job).aggregate(last=Max("token"))["last"]
    done = Done(held(job), {"reported": result}, job.started_at or job.created_at)
    if (sent == job.token or job.state == Job.State.RUNNING) and (
        finish([done]) or finish_late(done)
    ):
        return Completed()
    job.refresh_from_db(fields=["state"])
    return AlreadyDone() if job.state == Job.State.DONE else NotExpected(job.state)
