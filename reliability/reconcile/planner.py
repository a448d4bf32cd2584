"""Which (source, local day) pairs are due and have no report yet."""

from dataclasses import asdict, dataclass

from django.utils import timezone

from reliability.models import Run

JOB = "reconcile"


@dataclass(frozen=True)
class Planned:
    """What one pass did: days compared, days found without a statement, days that failed."""

    compared: int = 0
    absent: int = 0
    failed: int = 0
    left: bool = False


def plan(trigger: str) -> Planned:
    """Make one pass and record it as a ``Run``."""
    started_at = timezone.now()
    planned = Planned()
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(), ok=True,
        facts=asdict(planned),
    )  # fmt: skip
    return planned
