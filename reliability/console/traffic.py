"""What came to a source's door lately, each figure with the list behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, Sum
from django.urls import reverse

from reliability.conf import conf
from reliability.console.figures import Counted
from reliability.models import Delivery, Receipt, Refusal, Source, Tenant

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
Verdict = Receipt.Verdict
SHOWN = (Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.CONFLICT)


@dataclass(frozen=True)
class Figure:
    """A number, and the address of the list that shows its rows."""

    count: Counted
    href: str


@dataclass(frozen=True)
class Traffic:
    """One source since a moment; ``last_at`` is its newest delivery's, however long ago."""

    source: Source
    since: datetime
    accepted: Figure
    duplicates: Figure
    conflicts: Figure
    refused: Figure
    last_at: datetime | None
    all_href: str


def lately(tenant: Tenant, now: datetime) -> datetime:
    """Return the edge of a day ago, or a later one where more came than is counted at a time.

    Behind it stand at most ``conf().count_max`` receipts of the tenant, so that exact figures take
    as long at ten million events as at ten thousand.
    """
    day = (now - DAY).replace(microsecond=0)
    rows = Receipt.objects.filter(tenant=tenant, at__gte=day)
    newest = rows.order_by("-pk").values_list("at", flat=True)
    beyond = newest[conf().count_max : conf().count_max + 1].first()
    return max(day, beyond.replace(microsecond=0) + SECOND) if beyond else day


def traffic(sources: Sequence[Source], since: datetime) -> list[Traffic]:
    """Count the receipts of all sources in one pass; refusals have their counters."""
    of = [source.pk for source in sources]
    rows = Receipt.objects.filter(key__source__in=of, verdict__in=SHOWN, at__gte=since)
    counts = rows.order_by().values_list("key__source", "verdict").annotate(Count("pk"))
    found = {(source, verdict): number for source, verdict, number in counts}
    return [_traffic(source, since, found) for source in sources]


def _traffic(source: Source, since: datetime, found: dict[tuple[int, str], int]) -> Traffic:
    newest = Delivery.objects.filter(source=source).order_by("-received_at")

    def receipts(verdict: Receipt.Verdict) -> Figure:
        number = found.get((source.pk, verdict.value), 0)
        href = _href("deliveries", source, since, verdict=verdict.value)
        return Figure(Counted(number), href)

    return Traffic(
        source=source,
        since=since,
        accepted=receipts(Verdict.ACCEPTED),
        duplicates=receipts(Verdict.DUPLICATE),
        conflicts=receipts(Verdict.CONFLICT),
        refused=_refusals(source, since),
        last_at=newest.values_list("received_at", flat=True).first(),
        all_href=f"{reverse('console:deliveries')}?{urlencode({'source': source.slug})}",
    )


def _refusals(source: Source, since: datetime) -> Figure:
    rows = Refusal.objects.filter(source=source, last_at__gte=since)
    number = rows.aggregate(all=Sum("count"))["all"] or 0
    return Figure(Counted(number), _href("refused", source, since))


def _href(route: str, source: Source, since: datetime, **more: str) -> str:
    asked = {"source": source.slug, "since": since.isoformat(), **more}
    return f"{reverse(f'console:{route}')}?{urlencode(asked)}"
