"""What came to a source's door lately, each figure with the list behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
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
    """Count what came to all sources in three statements, however many they are."""
    of = [source.pk for source in sources]
    rows = Receipt.objects.filter(source__in=of, verdict__in=SHOWN, at__gte=since)
    counts = rows.order_by().values_list("source", "verdict").annotate(Count("pk"))
    told = _Told(
        since,
        {(source, verdict): number for source, verdict, number in counts},
        dict(_refusals(of, since)),
        dict(_newest(of)),
    )
    return [_traffic(source, told) for source in sources]


@dataclass(frozen=True)
class _Told:
    """What the statements said, by source."""

    since: datetime
    receipts: Mapping[tuple[int, str], int]
    refused: Mapping[int, int]
    last_at: Mapping[int, datetime | None]


def _refusals(of: Sequence[int], since: datetime) -> "QuerySet[Refusal, tuple[int, int]]":
    rows = Refusal.objects.filter(source__in=of, last_at__gte=since)
    return rows.order_by().values_list("source").annotate(Sum("count"))


def _newest(of: Sequence[int]) -> "QuerySet[Source, tuple[int, datetime | None]]":
    deliveries = Delivery.objects.filter(source=OuterRef("pk")).order_by("-received_at")
    newest = Subquery(deliveries.values("received_at")[:1])
    return Source.objects.filter(pk__in=of).values_list("pk").annotate(newest=newest)


def _traffic(source: Source, told: _Told) -> Traffic:
    def receipts(verdict: Receipt.Verdict) -> Figure:
        number = told.receipts.get((source.pk, verdict.value), 0)
        href = _href("deliveries", source, told.since, verdict=verdict.value)
        return Figure(Counted(number), href)

    refused = Counted(told.refused.get(source.pk, 0))
    return Traffic(
        source=source,
        since=told.since,
        accepted=receipts(Verdict.ACCEPTED),
        duplicates=receipts(Verdict.DUPLICATE),
        conflicts=receipts(Verdict.CONFLICT),
        refused=Figure(refused, _href("refused", source, told.since)),
        last_at=told.last_at[source.pk],
        all_href=f"{reverse('console:deliveries')}?{urlencode({'source': source.slug})}",
    )


def _href(route: str, source: Source, since: datetime, **more: str) -> str:
    asked = {"source": source.slug, "since": since.isoformat(), **more}
    return f"{reverse(f'console:{route}')}?{urlencode(asked)}"
