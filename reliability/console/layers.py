"""The three layers at a glance, each told from rows."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q, Sum

from reliability.conf import conf
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.figures import Counted, counted
from reliability.models import Attempt, Job, Receipt, Refusal, Report, Run

RECENT = timedelta(hours=1)
DEEDS = ("rescued", "rung", "buried")
WORKER_SEEN = timedelta(minutes=15)


@dataclass(frozen=True)
class Claims:
    """Layer 1 over the last hour; ``since`` is the exact edge the links carry."""

    since: datetime
    accepted: Counted
    repeats: Counted
    absorbed: Counted
    conflicts: Counted
    refused: int
    last_at: datetime | None


@dataclass(frozen=True)
class Sweep:
    """Layer 2: when it last passed, and how often since midnight UTC."""

    last: Run | None
    since: timedelta | None
    late: bool
    passes: int
    failed: int
    did: dict[str, int]

    @property
    def every(self) -> timedelta:
        return conf().sweep_every


@dataclass(frozen=True)
class Queue:
    """One queue: what is due, since when, and what runs."""

    name: str
    due: int
    later: int
    held: int
    running: int
    waited: timedelta | None

    @property
    def late(self) -> bool:
        """Whether a due job has waited longer than a lost bell can explain."""
        due = conf().start_grace + conf().sweep_every
        return self.waited is not None and self.waited > due


def claims(request: OperatorRequest) -> Claims:
    """Count what the door did within the last hour."""
    since = (request.now - RECENT).replace(microsecond=0)
    receipts = for_tenant(request, Receipt.objects.filter(at__gte=since))
    verdict = Receipt.Verdict
    refused = for_tenant(request, Refusal.objects.filter(last_at__gte=since))
    return Claims(
        since=since,
        accepted=counted(receipts.filter(verdict=verdict.ACCEPTED)),
        repeats=counted(receipts.filter(verdict=verdict.DUPLICATE)),
        absorbed=counted(receipts.filter(verdict=verdict.ABSORBED)),
        conflicts=counted(receipts.filter(verdict=verdict.CONFLICT)),
        refused=refused.aggregate(n=Sum("count"))["n"] or 0,
        last_at=_last_receipt_at(request),
    )


def _last_receipt_at(request: OperatorRequest) -> datetime | None:
    receipts = for_tenant(request, Receipt.objects.all()).order_by("-pk")
    return receipts.values_list("at", flat=True).first()


def sweep(request: OperatorRequest) -> Sweep:
    """Say when the sweep last had a good pass, and what it did since midnight UTC.

    It serves every tenant at once, so its passes belong to none.
    """
    midnight = request.now.replace(hour=0, minute=0, second=0, microsecond=0)
    runs = Run.objects.filter(job="sweep")
    today = list(runs.filter(started_at__gte=midnight).values_list("ok", "facts"))
    last = runs.filter(ok=True).order_by("-ended_at").first()
    since = request.now - last.ended_at if last else None
    return Sweep(
        last=last,
        since=since,
        late=since is None or since > conf().sweep_late_after,
        passes=len(today),
        failed=sum(not ok for ok, _ in today),
        did={name: sum(facts.get(name, 0) for _, facts in today) for name in DEEDS},
    )


def compared(request: OperatorRequest) -> list[Report]:
    """Return the newest current report of each source, by name."""
    reports = for_tenant(request, Report.objects.filter(current=True))
    newest = reports.order_by("source__slug", "-day").distinct("source__slug")
    return list(newest.select_related("source"))


def queues(request: OperatorRequest) -> list[Queue]:
    """Return every queue with work in it."""
    ready, due = Q(state=Job.State.READY, held=""), Q(run_at__lte=request.now)
    rows = (
        for_tenant(request, Job.objects.filter(state__in=[Job.State.READY, Job.State.RUNNING]))
        .order_by("queue")
        .values("queue")
        .annotate(
            due=Count("pk", filter=ready & due),
            oldest_at=Min("run_at", filter=ready & due),
            later=Count("pk", filter=ready & ~due),
            waits=Count("pk", filter=Q(state=Job.State.READY) & ~Q(held="")),
            runs=Count("pk", filter=Q(state=Job.State.RUNNING)),
        )
    )
    return [
        Queue(
            name=row["queue"],
            due=row["due"],
            later=row["later"],
            held=row["waits"],
            running=row["runs"],
            waited=request.now - row["oldest_at"] if row["oldest_at"] else None,
        )
        for row in rows
    ]


def workers(request: OperatorRequest) -> list[tuple[str, datetime, int]]:
    """Return the workers that ended a start lately: name, when last, how many."""
    since = request.now - WORKER_SEEN
    ended = for_tenant(request, Attempt.objects.filter(ended_at__gte=since).exclude(worker=""))
    seen = ended.order_by().values_list("worker").annotate(Max("ended_at"), Count("pk"))
    return sorted(seen)
