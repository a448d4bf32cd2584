"""What destinations answered, as text to read: hostile until shown so."""

from dataclasses import dataclass

from reliability.console.payload import Shown, shown
from reliability.models import Destination, DestinationAnswer, Job

OF_A_JOB_MAX = 5
LATEST_MAX = 10
LATEST_BYTES = 2_000
"""How much of each of a destination's latest answers its page shows."""


@dataclass(frozen=True)
class Heard:
    """One answer with its body laid out; what is personal or secret is kept back unless revealed."""

    answer: DestinationAnswer
    body: Shown

    @property
    def good(self) -> bool:
        return 200 <= self.answer.status < 300  # noqa: PLR2004 - HTTP: success


def answers_of(job: Job, *, redacted: bool) -> list[Heard]:
    """Return the newest answers to a job's starts."""
    rows = DestinationAnswer.objects.filter(tenant=job.tenant_id, job=job).order_by(
        "-at", "-pk"
    )
    return [
        Heard(one, shown(bytes(one.body), redacted=redacted)) for one in rows[:OF_A_JOB_MAX]
    ]


def latest_answers(destination: Destination) -> list[Heard]:
    """Return the newest answers of a destination, the beginning of each, redacted."""
    rows = DestinationAnswer.objects.filter(
        tenant=destination.tenant_id, job__source__destination=destination
    )
    found = rows.select_related("job__key").order_by("-at", "-pk")[:LATEST_MAX]
    return [Heard(one, shown(bytes(one.body)[:LATEST_BYTES], redacted=True)) for one in found]
