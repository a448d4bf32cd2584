"""What came to a source's door in the last day, each figure with the list behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, Sum
from django.urls import reverse

from reliability.conf import conf
from reliability.console.figures import Counted
from reliability.models import Delivery, Receipt, Refusal, Source

DAY = timedelta(days=1)
Verdict = Receipt.Verdict
SHOWN = (Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.CONFLICT)


@dataclass(frozen=True)
class Figure:
    """A number, and the address of the list that shows its rows."""

    count: Counted
    href: str


@dataclass(frozen=True)
class Traffic:
    """One source's last 24 hours; ``last_at`` is its newest delivery's, however long ago."""

    source: Source
    accepted: Figure
    duplicates: Figure
    conflicts: Figure
    refused: Figure
    last_at: datetime | None
    all_href: str


def traffic(sources: Sequence[Source], now: datetime) -> list[Traffic]:
    """Count the receipts of all sources in one pass over the day; refusals have their counters."""
    since = (now - DAY).replace(microsecond=0)
    of = [source.pk for source in sources]
    rows = Receipt.objects.filter(key__source__in=of, verdict__in=SHOWN, at__gte=since)
    counts = rows.order_by().values_list("key__source", "verdict").annotate(Count("pk"))
    found = {(source, verdict): number for source, verdict, number in counts}
    return [_traffic(source, since, found) for source in sources]


def _traffic(source: Source, since: datetime, found: dict[tuple[int, str], int]) -> Traffic:
    newest = Delivery.objects.filter(source=source).order_by("-received_at")

    def receipts(verdict: Receipt.Verdict) -> Figure:
        number, limit = found.get((source.pk, verdict.value), 0), conf().count_max
        href = _href("deliveries", source, since, verdict=verdict.value)
        return Figure(Counted(min(number, limit), number > limit), href)

    return Traffic(
        source=source,
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
