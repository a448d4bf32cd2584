"""Let go of what has had its time: old passes, bodies of settled events, jobs done long ago."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from reliability.conf import conf
from reliability.models import Body, DestinationAnswer, Job, ProvisionalCheck, Run
from reliability.work.purge import purge_done

RUNS_KEPT = timedelta(days=30)
ANSWERS_KEPT = timedelta(days=30)
"""What a destination answered may be personal, and is seldom asked about so late."""
SETTLED = (Job.State.DONE, Job.State.DISCARDED, Job.State.RESOLVED)


@dataclass(frozen=True)
class Pruned:
    runs: int
    checks: int
    answers: int
    bodies: int
    jobs: int


def prune(trigger: str) -> Pruned:
    """Remove what is due, in batches, at most ``conf().prune_batches_max`` of each; record the pass.

    Bodies go after ``conf().body_retention``, what destinations answered after 30 days; neither
    while a letter is open or a job unfinished;
    done jobs go after ``conf().retention``. The key, its operation and when it was done stay as
    long as the source.
    """
    started_at = timezone.now()
    runs = Run.objects.filter(ended_at__lt=started_at - RUNS_KEPT).exclude(job="prove")
    bodies = Body.objects.filter(created_at__lt=started_at - conf().body_retention).filter(
        Q(key__job__state__in=SETTLED) | Q(key__absorbed=True)
    )
    answers = DestinationAnswer.objects.filter(
        at__lt=started_at - ANSWERS_KEPT, job__state__in=SETTLED
    )
    purge_before = started_at - conf().retention
    checks = ProvisionalCheck.objects.filter(asked_at__lt=started_at - RUNS_KEPT)
    pruned = Pruned(
        runs=_in_batches(lambda limit: _delete(runs, limit)),
        checks=_in_batches(lambda limit: _delete(checks, limit)),
        answers=_in_batches(lambda limit: _delete(answers, limit)),
        bodies=_in_batches(lambda limit: _delete(bodies, limit)),
        jobs=_in_batches(lambda limit: purge_done(purge_before, limit=limit)),
    )
    Run.objects.create(
        job="prune", trigger=trigger, started_at=started_at, ended_at=timezone.now(), ok=True,
        facts=asdict(pruned),
    )  # fmt: skip
    return pruned


def _in_batches(remove: Callable[[int], int]) -> int:
    """Repeat until a batch was not full; return how many rows went."""
    gone, limit = 0, conf().sweep_batch_max
    for _ in range(conf().prune_batches_max):
        some = remove(limit)
        gone += some
        if some < limit:
            break
    return gone


def _delete(rows: QuerySet[Any], limit: int) -> int:
    some = list(rows.values_list("pk", flat=True)[:limit])
    rows.model._default_manager.filter(pk__in=some).delete()  # noqa: SLF001 - documented
    return len(some)
