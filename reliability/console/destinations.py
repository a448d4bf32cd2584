"""Destinations as a person reads them: where, how they stand, and what became of what was sent."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet

from reliability.console.access import OperatorRequest, for_tenant
from reliability.models import DeadLetter, Destination, Job, Source
from reliability.work.destination_acts import host_of
from reliability.work.destinations import KIND

RECENT = timedelta(hours=24)
DESTINATIONS_MAX = 200
SOURCES_MAX = 100
ENDS = (Job.State.DONE, Job.State.DEAD, Job.State.DISCARDED, Job.State.RESOLVED)


@dataclass(frozen=True)
class Breaker:
    """Whether a destination is left alone for now."""

    state: str
    words: str


@dataclass
class OfSource:
    """What waits of one source that sends to a destination."""

    slug: str
    ready: int = 0
    running: int = 0
    letters: int = 0


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One destination with everything its row shows."""

    destination: Destination
    breaker: Breaker
    sources: list[str]

    @property
    def host(self) -> str:
        return host_of(self.destination.url)


@dataclass(frozen=True, kw_only=True)
class Day:
    """How the jobs ended that a destination's sources sent on in the last 24 hours."""

    since: datetime
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def words(self) -> list[tuple[str, str, int]]:
        return [(state, Job.State(state).label.lower(), n) for state, n in self.ends.items()]


def standings(request: OperatorRequest) -> list[Standing]:
    """Return the tenant's destinations by name."""
    rows = for_tenant(request, Destination.objects.prefetch_related("sources"))
    return [standing(one, request.now) for one in rows.order_by("slug")[:DESTINATIONS_MAX]]


def standing(destination: Destination, now: datetime) -> Standing:
    """Describe one destination as it stands."""
    return Standing(
        destination=destination,
        breaker=breaker(destination, now),
        sources=sorted(source.slug for source in destination.sources.all()),
    )


def breaker(destination: Destination, now: datetime) -> Breaker:
    """Say whether the breaker is closed, open, or about to let one request try."""
    failures = f"{destination.failures} failures in a row"
    if destination.open_until is None:
        told = f"closed; {failures}" if destination.failures else "closed"
        return Breaker("good", told)
    if destination.open_until > now:
        return Breaker("stopped", f"open; {failures}")
    return Breaker("warn", f"the next request tries; {failures}")


def day_of(destination: Destination, now: datetime) -> Day:
    """Count how jobs sent on to a destination ended since 24 hours ago."""
    since = (now - RECENT).replace(microsecond=0)
    jobs = _jobs(destination).filter(ended_at__gte=since, state__in=ENDS)
    counts = dict(jobs.order_by().values_list("state").annotate(Count("pk")))
    return Day(since=since, ends={state: counts.get(state, 0) for state in ENDS})


def per_source(destination: Destination) -> list[OfSource]:
    """Count what waits of each source that sends to a destination."""
    names = Source.objects.filter(destination=destination).order_by("slug")
    found = {
        slug: OfSource(slug) for slug in names.values_list("slug", flat=True)[:SOURCES_MAX]
    }
    under_way = _jobs(destination).filter(state__in=[Job.State.READY, Job.State.RUNNING])
    for slug, state, count in (
        under_way.order_by().values_list("source__slug", "state").annotate(Count("pk"))
    ):
        if one := found.get(slug):
            setattr(one, state, count)
    letters = DeadLetter.objects.open().filter(
        tenant=destination.tenant_id, kind=KIND, source__destination=destination
    )
    for slug, count in letters.order_by().values_list("source__slug").annotate(Count("pk")):
        if one := found.get(slug):
            one.letters = count
    return list(found.values())


def _jobs(destination: Destination) -> "QuerySet[Job]":
    return Job.objects.filter(
        tenant=destination.tenant_id, kind=KIND, source__destination=destination
    )
