"""Alerts: what is open, what each rule sees now, what was, who was told, and a test of a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, Prefetch, Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from reliability.alerts.channels import ask_test, channels
from reliability.alerts.looking import Exceptions, looks
from reliability.alerts.moves import Look
from reliability.alerts.wording import IN_SECONDS
from reliability.console import withheld
from reliability.console.access import OperatorRequest, act, for_tenant, page
from reliability.console.choices import act_of
from reliability.console.figures import counted
from reliability.console.once import take_out
from reliability.console.pages import show
from reliability.console.parts import number, span
from reliability.models import Alert, AlertChannel, AlertDelivery, AlertRule, Silence, Source
from reliability.models.acting import Refused

SHOWN_MAX = 50
GAUGE = 300
OF_ALL = {AlertRule.Measure.SWEEP_LATE, AlertRule.Measure.BEAT, AlertRule.Measure.SNAPSHOT}
"""Measures of the whole machinery, not of one source."""
COUNTS = {AlertRule.Measure.OPEN_LETTERS, AlertRule.Measure.INFLOW}
LETTERS = "console:dead_letters"
BEHIND = {
    AlertRule.Measure.OPEN_LETTERS: LETTERS,
    AlertRule.Measure.OLDEST_LETTER: LETTERS,
    AlertRule.Measure.MONEY: LETTERS,
    AlertRule.Measure.INFLOW: LETTERS,
    AlertRule.Measure.READY: "console:jobs",
    AlertRule.Measure.SNAPSHOT: "console:health",
    AlertRule.Measure.BEAT: "console:runs",
    AlertRule.Measure.SWEEP_LATE: "console:runs",
    AlertRule.Measure.STATEMENT: "console:reports",
    AlertRule.Measure.CONSERVATION: "console:health",
}
"""The page that lists the rows behind a measure."""
SHOWN_ONCE = "channel secret"


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
    def letters(self) -> str:
        """The filter that finds the letters a rule on open letters counts."""
        rule = self.rule
        source = "" if self.source == "all" else self.source
        asked = {"source": source, "kind": rule.kind, "cause": rule.fingerprint}
        return urlencode({name: value for name, value in asked.items() if value})

    @property
    def behind(self) -> str:
        """The page that lists what its measure looks at; empty where there is none."""
        page = BEHIND.get(AlertRule.Measure(self.rule.measure), "")
        asked = f"?{self.letters}" if self.letters and page == LETTERS else ""
        return reverse(page) + asked if page else ""

    @property
    def tells(self) -> list[str]:
        """Addresses and channels; ``standing`` is prefetched by ``levels``."""
        standing: list[AlertChannel] = getattr(self.rule, "standing", [])
        return [*self.rule.emails, *(channel.name for channel in standing)]

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
    others = Count("rule__channels", filter=Q(rule__channels__removed_at=None))
    known = Alert.objects.select_related("rule", "source").annotate(others=others)
    alerts = for_tenant(request, known)
    live = list(
        alerts.filter(status__in=[Alert.Status.PENDING, Alert.Status.OPEN]).order_by("since")[
            :SHOWN_MAX
        ]
    )
    over = alerts.exclude(status__in=[Alert.Status.PENDING, Alert.Status.OPEN])
    messaged = AlertDelivery.objects.select_related("alert__rule", "channel")
    told = for_tenant(request, messaged)
    silences = for_tenant(request, Silence.objects.active(request.now))
    context = {
        "live": [(alert, why_withheld(alert.rule, alert)) for alert in live],
        "open": [alert for alert in live if alert.status == Alert.Status.OPEN],
        "levels": levels(request, live),
        "history": over.order_by("-since", "-pk")[:SHOWN_MAX],
        "told": told.order_by("-pk")[:SHOWN_MAX],
        "channels": channels(request.tenant),
        "silences": counted(silences),
        "shown": take_out(request, SHOWN_ONCE),
    }
    return show(request, "alerts/index.html", context)


@act(needs="send_test")
def send_test(request: OperatorRequest) -> HttpResponse:
    """Put a test into the outbox of one of the tenant's addresses."""
    done = ask_test(request.POST.get("email", ""), act_of(request))
    if isinstance(done, Refused):
        messages.error(request, f"{done.why} Nothing was sent.")
    else:
        messages.info(request, f"A test to {done.to} waits; its result will stand below.")
    return redirect("console:alerts")


def levels(request: OperatorRequest, live: Sequence[Alert]) -> list[Level]:
    """Measure every rule: on its own source, or on each source that stands above zero."""
    standing = Prefetch("channels", AlertChannel.objects.standing(), to_attr="standing")
    known = AlertRule.objects.select_related("source", "tenant").prefetch_related(standing)
    rules = for_tenant(request, known)
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
