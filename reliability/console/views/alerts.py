"""Alerts: what is open, what each rule sees now, what was, who was told, and a test of a channel."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.alerts.channels import ask_test, channels
from reliability.alerts.looking import Exceptions, looks
from reliability.alerts.moves import Look
from reliability.alerts.wording import IN_SECONDS
from reliability.console import withheld
from reliability.console.access import OperatorRequest, act, for_tenant, page
from reliability.console.choices import act_of
from reliability.console.figures import counted
from reliability.console.pages import show
from reliability.console.parts import number, span
from reliability.models import Alert, AlertDelivery, AlertRule, Silence, Source
from reliability.models.acting import Refused

SHOWN_MAX = 50
GAUGE = 300
OF_ALL = {AlertRule.Measure.SWEEP_LATE, AlertRule.Measure.BEAT, AlertRule.Measure.SNAPSHOT}
"""Measures of the whole machinery, not of one source."""
COUNTS = {AlertRule.Measure.OPEN_LETTERS, AlertRule.Measure.INFLOW}


@dataclass(frozen=True)
class Level:
    """A rule on one scope: its value now against its marks, and how it is drawn."""

    rule: AlertRule
    source: str
    value: int
    state: str
    withheld: str = ""
    withheld_until: datetime | None = None
    uncounted: int = 0

    @property
    def hushed(self) -> str:
        """Why nobody would be told, in words."""
        return why_withheld(self.rule, self)

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
    return span(timedelta(seconds=value)) if rule.measure in IN_SECONDS else number(value)


def why_withheld(rule: AlertRule, of: withheld.Withholding) -> str:
    """Say why nobody is told of an alert of a rule; empty where somebody is."""
    return withheld.in_words(of, counts=rule.measure in COUNTS)


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
    silences = for_tenant(request, Silence.objects.active(request.now))
    context = {
        "live": [(alert, why_withheld(alert.rule, alert)) for alert in live],
        "open": [alert for alert in live if alert.status == Alert.Status.OPEN],
        "levels": levels(request, live),
        "history": over.order_by("-since", "-pk")[:SHOWN_MAX],
        "told": told.order_by("-pk")[:SHOWN_MAX],
        "channels": channels(request.tenant),
        "silences": counted(silences),
    }
    return show(request, "alerts/index.html", context)


@act(needs="send_test")
def send_test(request: OperatorRequest) -> HttpResponse:
    """Put a test into the outbox of one of the tenant's addresses."""
    done = ask_test(request.POST.get("email", ""), act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing was sent.")
    else:
        messages.info(request, f"A test to {done.email} waits; its result will stand below.")
    return redirect("console:alerts")


def levels(request: OperatorRequest, live: list[Alert]) -> list[Level]:
    """Measure every rule: on its own source, or on each source that stands above zero."""
    rules = for_tenant(request, AlertRule.objects.select_related("source", "tenant"))
    slugs: dict[int | None, str] = dict(
        for_tenant(request, Source.objects.all()).values_list("pk", "slug")
    )
    at = {(alert.rule_id, alert.source_id): alert for alert in live}
    excepted = Exceptions.of(request.tenant, request.now)
    told = []
    for rule in rules.order_by("pk"):
        found = looks(rule, at, excepted=excepted, now=request.now)
        found.sort(key=lambda look: -look.value)
        told += [_level(rule, look, slugs) for look in found[:SHOWN_MAX]] or [
            Level(rule, _where(rule, slugs), 0, "quiet" if rule.enabled else "off")
        ]
    return told


def _where(rule: AlertRule, slugs: dict[int | None, str]) -> str:
    """Say where a rule that sees nothing looks; empty is each source."""
    return "all" if rule.measure in OF_ALL else slugs.get(rule.source_id, "")


def _level(rule: AlertRule, look: Look, slugs: dict[int | None, str]) -> Level:
    quiet = "quiet" if rule.enabled else "off"
    return Level(
        rule,
        slugs.get(look.source_id, "all"),
        look.value,
        look.alert.status if look.alert else quiet,
        look.hush if look.value >= rule.high or look.alert else "",
        look.hush_until,
        look.uncounted,
    )
