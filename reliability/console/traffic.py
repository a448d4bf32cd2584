"""What came to a source's door in the last day, each figure with the list behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Sum
from django.urls import reverse

from reliability.console.figures import Counted, counted
from reliability.models import Delivery, Receipt, Refusal, Source

DAY = timedelta(days=1)
Verdict = Receipt.Verdict


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


def traffic(source: Source, now: datetime) -> Traffic:
    """Count receipts up to the usual limit; refusals come from their own counters."""
    since = (now - DAY).replace(microsecond=0)
    newest = Delivery.objects.filter(source=source).order_by("-received_at")
    return Traffic(
        source=source,
        accepted=_receipts(source, Verdict.ACCEPTED, since),
        duplicates=_receipts(source, Verdict.DUPLICATE, since),
        conflicts=_receipts(source, Verdict.CONFLICT, since),
        refused=_refusals(source, since),
        last_at=newest.values_list("received_at", flat=True).first(),
        all_href=f"{reverse('console:deliveries')}?{urlencode({'source': source.slug})}",
    )


def _receipts(source: Source, verdict: Receipt.Verdict, since: datetime) -> Figure:
    rows = Receipt.objects.filter(key__source=source, verdict=verdict, at__gte=since)
    return Figure(counted(rows), _href("deliveries", source, since, verdict=verdict.value))


def _refusals(source: Source, since: datetime) -> Figure:
    rows = Refusal.objects.filter(source=source, last_at__gte=since)
    number = rows.aggregate(all=Sum("count"))["all"] or 0
    return Figure(Counted(number), _href("refused", source, since))


def _href(route: str, source: Source, since: datetime, **more: str) -> str:
    asked = {"source": source.slug, "since": since.isoformat(), **more}
    return f"{reverse(f'console:{route}')}?{urlencode(asked)}"
