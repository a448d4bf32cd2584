"""Figures for Prometheus, read from the tables: no process counts anything by itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, QuerySet, Sum
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reliability.models import (
    Alert,
    AlertRule,
    DeadLetter,
    Job,
    Receipt,
    Refusal,
    Report,
    Run,
    Source,
)
from reliability.work.drain import QUEUES

KEPT = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)
ROWS_MAX = 20_000
"""Rows looked at for one state: a figure that reaches it means that many or more."""
SOURCES_MAX = 200
"""Sources named; what the others hold stands under ``other``."""
Metrics = Iterator[GaugeMetricFamily]
Rows = QuerySet[Any, Any]


@dataclass
class _Kept:
    """What was answered last, by whether it names sources."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    said: dict[bool, tuple[datetime, bytes]] = field(default_factory=dict)


_kept = _Kept()


def metrics(*, named: bool) -> bytes:
    """Return all figures in Prometheus' text format, at most ten seconds old.

    ``named`` says whether tenants and sources are labels; without it there are totals only. One
    reader at a time asks the database. Raises Django's own database errors.
    """
    with _kept.lock:
        now = timezone.now()
        at, text = _kept.said.get(named, (None, b""))
        if at is None or not timedelta(0) <= now - at < KEPT:
            registry = CollectorRegistry(auto_describe=False)
            registry.register(Figures(now, named=named))
            text = generate_latest(registry)
            _kept.said[named] = (now, text)
        return text


def forget() -> None:
    """Forget what was answered last. For tests."""
    _kept.said.clear()


class Figures(Collector):
    """Reads every figure once, at one moment."""

    def __init__(self, now: datetime, *, named: bool) -> None:
        self._now, self._named = now, named
        sources = Source.objects.select_related("tenant").order_by("internal", "pk")
        self._names = {
            source.pk: (source.tenant.slug, source.slug) for source in sources[:SOURCES_MAX]
        } if named else {}  # fmt: skip

    def collect(self) -> Metrics:
        """Yield the families, each with all its samples."""
        yield from self._claims()
        yield from self._work()
        yield from self._ages()
        yield from self._alerts()
        yield self._statements()

    def _claims(self) -> Metrics:
        lately = Receipt.objects.filter(at__gt=self._now - MINUTE).order_by()
        found = dict(lately.values_list("verdict").annotate(Count("pk")))
        receipts = _gauge(
            "receipts_last_minute", "What deliveries of the last minute did.", "verdict"
        )
        for verdict in Receipt.Verdict.values:
            receipts.add_metric([verdict], found.get(verdict, 0))
        yield receipts
        hour = self._now.replace(minute=0, second=0, microsecond=0)
        refused = Refusal.objects.filter(hour=hour).aggregate(n=Sum("count"))["n"] or 0
        yield _one(
            "refused_this_hour", "Requests the door turned away since the full hour.", refused
        )

    def _work(self) -> Metrics:
        ready = Job.objects.ready()
        states: dict[str, Rows] = {
            "ready": ready.filter(held=""),
            "held": ready.exclude(held=""),
            "running": Job.objects.filter(state=Job.State.RUNNING),
        }
        said = f"Jobs by state; {ROWS_MAX} means that many or more."
        jobs = _gauge("jobs", said, "state", *self._labels)
        for state, rows in states.items():
            self._add(jobs, rows, state)
        yield jobs
        letters = _gauge(
            "dead_letters_open", f"Open dead letters, up to {ROWS_MAX}.", *self._labels
        )
        self._add(letters, DeadLetter.objects.open())
        yield letters

    def _add(self, family: GaugeMetricFamily, rows: Rows, *first: str) -> None:
        """Count rows by source, or all together where nobody is named."""
        found = Counter(rows.order_by().values_list("source_id", flat=True)[:ROWS_MAX])
        if not self._named:
            family.add_metric([*first], found.total())
            return
        of_name: Counter[tuple[str, str]] = Counter()
        for source_id, number in found.items():
            of_name[self._names.get(source_id, ("other", "other"))] += number
        for name, number in sorted(of_name.items()):
            family.add_metric([*first, *name], number)

    @property
    def _labels(self) -> tuple[str, ...]:
        return ("tenant", "source") if self._named else ()

    def _ages(self) -> Metrics:
        oldest = _gauge(
            "oldest_ready_seconds", "How long the oldest due job has waited.", "queue"
        )
        due = Job.objects.due(self._now)
        for queue in QUEUES:
            run_at = due.filter(queue=queue).aggregate(at=Min("run_at"))["at"]
            oldest.add_metric([queue], self._age(run_at) if run_at else 0)
        yield oldest
        swept = Run.objects.filter(job="sweep", ok=True).order_by("-ended_at").first()
        if swept:
            age = self._age(swept.ended_at)
            yield _one("sweep_age_seconds", "Since the last good sweep.", age)
        beat = Run.objects.filter(trigger=Run.Trigger.BEAT).order_by("-started_at").first()
        if beat:
            yield _one(
                "beat_age_seconds", "Since beat last ran anything.", self._age(beat.started_at)
            )

    def _alerts(self) -> Metrics:
        live = Alert.objects.filter(status=Alert.Status.OPEN)
        found = dict(live.order_by().values_list("rule__measure").annotate(Count("pk")))
        alerts = _gauge("alerts_open", "Open alerts.", "measure")
        for measure in AlertRule.Measure.values:
            alerts.add_metric([measure], found.get(measure, 0))
        yield alerts
        lost = live.filter(rule__measure=AlertRule.Measure.CONSERVATION)
        value = lost.aggregate(n=Sum("value"))["n"] or 0
        said = "Accepted events without a job, as the alerts last saw it: anything but 0 is an alarm."
        yield _one("conservation_difference", said, value)

    def _statements(self) -> GaugeMetricFamily:
        newest = Report.objects.filter(current=True, completeness__in=Report.JUDGED).order_by(
            "source", "-day"
        )
        ended = newest.distinct("source").values_list("source_id", "ends_at")
        said = "Since the end of the newest day with a usable statement; of all, the oldest."
        family = _gauge("statement_age_seconds", said, *self._labels)
        ages = {source_id: self._age(ends_at) for source_id, ends_at in ended}
        if not self._named:
            if ages:
                family.add_metric([], max(ages.values()))
            return family
        for source_id, age in ages.items():
            if name := self._names.get(source_id):
                family.add_metric(name, age)
        return family

    def _age(self, since: datetime) -> float:
        return max(0.0, (self._now - since).total_seconds())


def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"reliability_{name}", said, labels=labels)


def _one(name: str, said: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"reliability_{name}", said, value=value)
