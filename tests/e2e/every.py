"""Every page of the console over one busy scene: what the URLconf routes, each with an object."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.utils import timezone

from reliability.console import access, urls
from reliability.handlers import DedupeWindow, Event, LocalTransaction, ProviderHeader, Sink
from reliability.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    ApiToken,
    DeadLetter,
    Discrepancy,
    Job,
    Redrive,
    Source,
    SourceSecret,
    Tenant,
)
from reliability.policy import Backoff
from reliability.work.dead_letters import Act
from reliability.work.redrive import Pace, Plan, advance, freeze, start
from tests.console import rows
from tests.database import world
from tests.database.days import MAPPED, Row, operation, report

KEY_ERROR = "stripe.payment_intent.succeeded"
REFUNDED = "stripe.charge.refunded"
PAYOUT = "stripe.payout.paid"
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date()

NO_PAGES = {
    "dead-letters/export/csv/": "a file",
    "dead-letters/export/json/": "a file",
    "reports/month/pack/": "a file",
    "reports/<uuid:public_id>/csv/": "a file",
    "reports/<uuid:public_id>/json/": "a file",
    "in/<slug:tenant>/<path:where>": "leads on to another page",
    "healthz": "read by machines",
    "readyz": "read by machines",
    "metrics": "read by machines",
}
"""Routes that answer GET without a page of their own, and why."""


def pages(seen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a name and an address for each page, and more than one where a page has more faces."""
    for route, view in access.routed(urls.urlpatterns):
        if route in NO_PAGES or not _is_a_page(view):
            continue
        noun = route.partition("/")[0]
        path = route.replace("<uuid:public_id>", str(seen[noun])) if "<" in route else route
        name = route.replace("<uuid:public_id>", "one").replace("/", "_").strip("_")
        for face, query in FACES.get(route, {"": ""}).items():
            asked = query.format(**seen)
            yield "_".join(filter(None, (name or "overview", face))), f"/{path}{asked}"


def _is_a_page(view: access.View) -> bool:
    """Tell a page from an act, which answers every GET with 405, strangers' too."""
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    return view(request, public_id="").status_code != 405


FACES = {
    "trace/": {"": "", "story": "?find={key}", "nowhere": "?find=evt_nowhere"},
    "dead-letters/": {
        "": "",
        "searched": "?text=period_locked&payload=data.object.amount_refunded=1840&currency=EUR",
        "saved": "?source=stripe-live",
        "matching": f"?kind={KEY_ERROR}&select=matching",
    },
    "dead-letters/causes/one/": {"": "?{cause}"},
    "policies/kind/": {
        "": f"?kind={REFUNDED}",
        "header": f"?kind={KEY_ERROR}",
        "window": f"?kind={PAYOUT}",
    },
    "redrives/<uuid:public_id>/": {"": "", "confirm": "../{frozen}/"},
}
"""Faces of a page by their query; a page of one thing needs to be told which."""


@contextmanager
def kinds() -> Iterator[None]:
    """Register what the letters of the scene were handled by, one kind per sort of promise."""
    hour = timedelta(hours=1)
    policy = Backoff(first=timedelta(seconds=1), cap=hour, attempts=6)
    sinks: dict[str, Sink] = {
        REFUNDED: LocalTransaction(),
        KEY_ERROR: ProviderHeader(window=24 * hour),
        PAYOUT: DedupeWindow(window=hour, record="before"),
    }
    with ExitStack() as registered:
        for kind, sink in sinks.items():
            registered.enter_context(world.kind(kind, _handle, sink=sink, policy=policy))
        yield


def _handle(event: Event) -> None:
    return None


def one_of_each(acme: Tenant) -> dict[str, Any]:
    """Build one object of each noun in the busy morning; return their ids by the noun."""
    live = Source.objects.get(tenant=acme, slug="stripe-live")
    newest = DeadLetter.objects.select_related("job__key").latest("buried_at")
    compared = _a_day(acme)
    _set_up(live)
    _silenced(live)
    cause = {"source": live.slug, "kind": newest.kind, "cause": newest.fingerprint}
    return {
        "alert-rules": AlertRule.objects.filter(tenant=acme)[0].public_id,
        "alerts": rows.silence(live).public_id,
        "dead-letters": newest.public_id,
        "key": newest.job.key.key,
        "cause": urlencode(cause),
        "destinations": rows.destination(live).public_id,
        "discrepancies": Discrepancy.objects.earliest("pk").public_id,
        "frozen": _frozen(acme, source=live.slug).public_id,
        "redrives": _running(acme).public_id,
        "reports": compared.public_id,
        "sources": live.public_id,
        "statements": compared.statement.public_id,
        "ignore-rules": rows.ignore_rule(live).public_id,
        "saved-views": rows.saved_view(live, name="live letters").public_id,
    }


def _a_day(acme: Tenant) -> Any:
    """Return yesterday's report of a shop: one agrees, two differ, one is missing."""
    shop = world.source("shop", of=acme.slug)
    noon = datetime.combine(YESTERDAY, time(12), UTC)
    Source.objects.filter(pk=shop.pk).update(
        zone="UTC", statement_format="mapped-csv", statement_options=MAPPED,
        statement_kinds=["charge", "refund"], created_at=noon,
    )  # fmt: skip
    shop.refresh_from_db()
    for reference, amount in (("ch_2", 950), ("ch_5", 120_000), ("ch_9", 3500)):
        operation(shop, reference, amount, occurred_at=noon)
    lines = {"ch_1": "249.00", "ch_2": "10.00", "ch_5": "1200.00"}
    at = noon.isoformat()
    told = [Row(reference, amount, occurred=at) for reference, amount in lines.items()]
    fee = Row("", "-12.50", kind="fee", id="f", occurred=at)
    return report(shop, *told, fee, day=YESTERDAY)


def _set_up(source: Source) -> None:
    for secret in ("whsec_b25l", "whsec_dHdv"):
        SourceSecret.objects.rotate(source, secret, overlap_until=source.created_at)
    ApiToken.issue(source.tenant, "shop")


def _silenced(source: Source) -> None:
    now = timezone.now()
    rows.silence(source, reason="last week", ended_at=now, ended_by="ines")
    hour = now + timedelta(hours=1)
    Alert.objects.update(withheld="silenced", withheld_until=hour, told_at=None)
    AlertDelivery.objects.create(
        tenant=source.tenant, occasion="test 1", email="on-call@acme.example", value=0,
        counted_at=now, due_at=now, status="failed", error="ConnectionRefusedError", tries=10,
    )  # fmt: skip


def _frozen(acme: Tenant, *, source: str = "stripe-live", **asked: str) -> Redrive:
    letters = DeadLetter.objects.filter(source__slug=source, **asked)
    query = urlencode({"source": source} | asked)
    return freeze(letters, Act(acme, "n.okafor"), asked=query, now=timezone.now())


def _running(acme: Tenant) -> Redrive:
    """Return a redrive of which some letters are done and some are on their way."""
    pace = Pace(how="steady", rate=0.2, stop_percent=20, stop_after=10)
    act = Act(acme, "n.okafor", reason="period reopened, FIN-208")
    running = start(_frozen(acme, kind=REFUNDED), act, Plan(pace=pace))
    advance(timezone.now() + timedelta(seconds=20))
    some = Job.objects.filter(state="ready", round=2).values("pk")[:2]
    Job.objects.filter(pk__in=some).update(state="running", token=1,
        lease_expires_at=timezone.now())  # fmt: skip
    Job.objects.filter(state="running").update(state="done", lease_expires_at=None)
    advance(timezone.now() + timedelta(seconds=21))
    return running
