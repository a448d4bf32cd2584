"""Alerts: what is open, what each rule sees now, what was, and who was told."""

from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpResponse

from reliability.alerts.measures import MEASURES
from reliability.console.access import OperatorRequest, for_tenant, page
from reliability.console.pages import show
from reliability.console.parts import number, span
from reliability.models import Alert, AlertDelivery, AlertRule, Source

SHOWN_MAX = 50
SECONDS = {AlertRule.Measure.OLDEST_LETTER, AlertRule.Measure.SWEEP_LATE}
GAUGE = 300


@dataclass(frozen=True)
class Level:
    """A rule on one scope: its value now against its marks, and how it is drawn."""

    rule: AlertRule
    source: str
    value: int
    state: str

    @property
    def width(self) -> float:
        """The bar's length; the high mark stands at four fifths."""
        return round(min(GAUGE * 0.8 * self.value / max(self.rule.high, 1), GAUGE), 1)

    @property
    def low_at(self) -> float:
        return round(GAUGE * 0.8 * self.rule.low / max(self.rule.high, 1), 1)

    @property
    def now(self) -> str:
        return in_words(self.rule, self.value)

    @property
    def high(self) -> str:
        return in_words(self.rule, self.rule.high)

    @property
    def low(self) -> str:
        return in_words(self.rule, self.rule.low)

    @property
    def hold(self) -> str:
        return span(timedelta(seconds=self.rule.hold_seconds))


def in_words(rule: AlertRule, value: int) -> str:
    """Write a value in its measure's unit: a count, or a time."""
    return span(timedelta(seconds=value)) if rule.measure in SECONDS else number(value)


@page(needs="view_alert")
def index(request: OperatorRequest) -> HttpResponse:
    """Show alerts and rules; values are measured now, not remembered."""
    alerts = for_tenant(request, Alert.objects.select_related("rule", "source"))
    live = list(
        alerts.filter(status__in=[Alert.Status.PENDING, Alert.Status.OPEN]).order_by("since")[
            :SHOWN_MAX
        ]
    )
    over = alerts.exclude(status__in=[Alert.Status.PENDING, Alert.Status.OPEN])
    told = for_tenant(request, AlertDelivery.objects.select_related("alert__rule"))
    context = {
        "live": live,
        "open": [alert for alert in live if alert.status == Alert.Status.OPEN],
        "levels": levels(request, live),
        "history": over.order_by("-since", "-pk")[:SHOWN_MAX],
        "told": told.order_by("-pk")[:SHOWN_MAX],
    }
    return show(request, "alerts/index.html", context)


def levels(request: OperatorRequest, live: list[Alert]) -> list[Level]:
    """Measure every rule: on its own source, or on each source that stands above zero."""
    rules = for_tenant(request, AlertRule.objects.select_related("source")).order_by("pk")
    slugs: dict[int | None, str] = dict(
        for_tenant(request, Source.objects.all()).values_list("pk", "slug")
    )
    states = {(alert.rule_id, alert.source_id): alert.status for alert in live}
    told = []
    measured = {
        rule.measure: MEASURES[rule.measure](request.tenant, request.now) for rule in rules
    }
    for rule in rules:
        values = measured[rule.measure]
        scopes = (
            [rule.source_id]
            if rule.source_id
            else sorted(values, key=lambda s: -values[s]) or [None]
        )
        for scope in scopes[:SHOWN_MAX]:
            state = states.get((rule.pk, scope), "quiet" if rule.enabled else "off")
            told.append(
                Level(
                    rule,
                    slugs.get(scope, "all" if None in values else ""),
                    values.get(scope, 0),
                    state,
                )
            )
    return told
