"""The first page: is everything that came in done, and what waits for a person."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from django.http import HttpResponse

from reliability.console import layers, week
from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.conservation import conservation
from reliability.console.dry_run import under_way
from reliability.console.pages import show
from reliability.console.parts import are, number
from reliability.console.pauses import paused_now
from reliability.models import Alert, AlertRule, DeadLetter, Redrive, Report, Source

REDRIVES_MAX = 3
GOOD = (Report.Completeness.COMPLETE,)


@dataclass(frozen=True)
class OfSource:
    """One source's open letters beside the marks of its alert."""

    slug: str
    open: int
    oldest_at: datetime | None
    high: int | None
    low: int | None


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """Show the three layers, the conservation line and the dead letters."""
    letters, rule = per_source(request)
    open_now = sum(source.open for source in letters)
    context: dict[str, Any] = {
        "alerts": open_alerts(request),
        "pauses": paused_now(request),
        "claims": layers.claims(request),
        "sweep": layers.sweep(request),
        "reports": layers.compared(request),
        "queues": layers.queues(request),
        "workers": layers.workers(request),
        "under_way": under_way(for_tenant(request, Redrive.objects.live()), REDRIVES_MAX),
        "sum": conservation(request.tenant),
        "letters": letters,
        "open_now": open_now,
        "rule": rule,
        "chart": week.chart(
            week.week(request, open_now),
            high=rule.high if rule else None,
            low=rule.low if rule else None,
        ),
    }
    context["withheld"] = [r for r in context["reports"] if r.completeness not in GOOD]
    compared = {report.source_id for report in context["reports"]}
    context["unwatched"] = unwatched(request, compared)
    context["say"] = said(context)
    return show(request, "overview/index.html", context)


def open_alerts(request: OperatorRequest) -> list[Alert]:
    """Return the alerts that are open now, oldest first."""
    alerts = for_tenant(request, Alert.objects.filter(status=Alert.Status.OPEN))
    return list(alerts.select_related("rule", "source").order_by("since")[:20])


def per_source(request: OperatorRequest) -> tuple[list[OfSource], AlertRule | None]:
    """Return each source's open letters, and the rule that watches every source alike."""
    rules = for_tenant(
        request,
        AlertRule.objects.filter(
            enabled=True, measure=AlertRule.Measure.OPEN_LETTERS, kind="", fingerprint=""
        ),
    )
    by_source = {rule.source_id: rule for rule in rules}
    # The tenant by its sources: they are in the index that holds all this, the tenant is not.
    rows = (
        DeadLetter.objects.open()
        .filter(source__tenant=request.tenant)
        .order_by("source__slug")
        .values("source_id", "source__slug")
        .annotate(open=Count("pk"), oldest_at=Min("buried_at"))
    )
    told = []
    for row in rows:
        rule = by_source.get(row["source_id"]) or by_source.get(None)
        told.append(
            OfSource(
                row["source__slug"], row["open"], row["oldest_at"],
                rule.high if rule else None, rule.low if rule else None,
            )
        )  # fmt: skip
    return told, by_source.get(None)


def unwatched(request: OperatorRequest, compared: set[int]) -> list[str]:
    """Return the sources with a door that no statement speaks of."""
    doors = for_tenant(request, Source.objects.filter(internal=False)).order_by("slug")
    return list(doors.exclude(pk__in=compared).values_list("slug", flat=True)[:20])


def said(context: dict[str, Any]) -> str:
    """Say in one sentence how things stand."""
    sentences = [_layers_said(context)]
    waiting = context["open_now"]
    sentences.append(
        f"{number(waiting)} dead {'letter waits' if waiting == 1 else 'letters wait'} for a person."
        if waiting
        else "No dead letter waits."
    )
    sentences.extend(_reports_said(context["reports"]))
    return " ".join(sentences)


def _reports_said(reports: Sequence[Report]) -> Iterator[str]:
    """Tell apart reports that give no verdict from those whose verdicts stand on less."""
    state = Report.Completeness
    many = Counter(report.completeness for report in reports)
    if n := many[state.INCOMPLETE] + many[state.ABSENT]:
        yield f"{n} of {len(reports)} newest reports cannot be relied on."
    if n := many[state.UNPROVEN]:
        yield (
            f"{n} of {len(reports)} newest reports {are(n)} unproven: "
            "no count or balance shows that no row is missing."
        )
    if n := many[state.FORCED]:
        yield f"{n} of {len(reports)} newest reports {are(n)} forced."


def _layers_said(context: dict[str, Any]) -> str:
    missing = context["sum"].missing
    if missing:
        return f"{number(abs(missing))} accepted events are not accounted for."
    if context["sweep"].late:
        return "The sweep is late: a crashed worker’s job is not rescued now."
    if any(queue.late for queue in context["queues"]):
        return "Due work waits longer than it should: workers may be away."
    return "Claims and the sweep are healthy."
