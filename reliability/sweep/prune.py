"""Let go of what has had its time: old passes, and bodies of events that are long settled."""

from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from reliability.conf import conf
from reliability.models import Body, Job, Run

RUNS_KEPT = timedelta(days=30)
SETTLED = (Job.State.DONE, Job.State.DISCARDED, Job.State.RESOLVED)


@dataclass(frozen=True)
class Pruned:
    runs: int
    bodies: int


def prune(trigger: str) -> Pruned:
    """Remove at most one batch of each and record the pass.

    Bodies go after ``conf().body_retention``, never while a letter is open or a job unfinished;
    the key, its operation and its fate stay as long as the source.
    """
    started_at = timezone.now()
    limit = conf().sweep_batch_max
    runs = Run.objects.filter(ended_at__lt=started_at - RUNS_KEPT)
    bodies = Body.objects.filter(created_at__lt=started_at - conf().body_retention).filter(
        Q(key__job__state__in=SETTLED) | Q(key__absorbed=True)
    )
    pruned = Pruned(
        runs=Run.objects.filter(
            pk__in=list(runs.values_list("pk", flat=True)[:limit])
        ).delete()[0],
        bodies=Body.objects.filter(
            pk__in=list(bodies.values_list("pk", flat=True)[:limit])
        ).delete()[0],
    )
    Run.objects.create(
        job="prune", trigger=trigger, started_at=started_at, ended_at=timezone.now(), ok=True,
        facts=asdict(pruned),
    )  # fmt: skip
    return pruned
