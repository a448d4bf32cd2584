"""What operators do in the demo: letters edited and discarded, causes noted, redrives run."""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from reliability.alerts.evaluate import evaluate
from reliability.management.asking import tenant_called
from reliability.management.company import by, kept, wait
from reliability.management.letters import seen
from reliability.management.redrives import row
from reliability.management.stage import Stage
from reliability.models import Alert, AlertRule, Body, DeadLetter, LetterGroup, Redrive
from reliability.proof import afternoon
from reliability.proof.cast import BILLING, SHOP, STRIPE, StorySource
from reliability.work import redrive as work
from reliability.work.causes import Cause, Note, write_note
from reliability.work.dead_letters import discard, resolve, restore
from reliability.work.edit import Edit, edit_and_requeue

SETTLE_SECONDS, ALERT_SECONDS = 120, 60
FAST, PATIENT = 50.0, 100
"""Letters per second, and the percentage of failures at which a redrive never stops itself."""
INVOICES = afternoon.STUCK_INVOICES + afternoon.FROZEN_INVOICES
Outcome = DeadLetter.Outcome
Letters = QuerySet[DeadLetter]
Facts = dict[str, Any]


def open_letters(of: StorySource, **asked: str) -> Letters:
    """Return a source's open letters, oldest first."""
    letters = DeadLetter.objects.open().filter(
        source__slug=of.name, tenant__slug=of.tenant, **asked
    )
    return letters.select_related("source", "tenant", "job").order_by("pk")


def wait_for_the_afternoon() -> None:
    """Wait until whatever dies of the afternoon has died."""
    wait(lambda: open_letters(BILLING).count() == INVOICES, seconds=SETTLE_SECONDS)
    orders = open_letters(SHOP, kind="standard-webhooks.order.paid")
    wait(lambda: orders.count() == afternoon.STUCK_ORDERS, seconds=SETTLE_SECONDS)


def decide_letters(edited_key: str, resolved_key: str) -> None:
    """Edit one frozen customer's charge, book another by hand, discard two and restore one."""
    acme = tenant_called(STRIPE.tenant)
    letter = open_letters(STRIPE).get(job__key__key=edited_key)
    body = Body.objects.get(key__job=letter.job, first=True)
    edit = Edit(
        base_id=body.pk,
        raw=afternoon.account_opened(bytes(body.raw)),
        changed=[afternoon.EDITED],
    )
    reason = "the customer has a new account: booked there"
    kept(edit_and_requeue(seen([letter])[0], by("olga", acme, reason), edit))
    by_hand = list(open_letters(STRIPE).filter(job__key__key=resolved_key))
    kept(resolve(seen(by_hand), by("olga", acme, "booked by hand, voucher 4711")))
    broken = list(open_letters(STRIPE, outcome=Outcome.UNPARSEABLE)[:2])
    kept(discard(seen(broken), by("olga", acme, "sent again whole by the provider")))
    broken[0].refresh_from_db()
    broken[0].job.refresh_from_db()
    why = "only one of the two came again"
    kept(restore(seen(broken[:1])[0], by("olga", acme, why)))


def note_causes() -> None:
    """Name who looks into the largest cause, and mute the one that waits for a release."""
    frozen = open_letters(STRIPE, outcome=Outcome.FAILED)[0]
    _note(
        frozen,
        Note(owner="olga", text="Support opens these accounts today.", ticket="OPS-311"),
    )
    warning = open_letters(STRIPE, outcome=Outcome.UNROUTABLE)[0]
    until = timezone.now() + timedelta(days=7)
    _note(warning, Note(owner="amir", text="A handler comes next week.", muted_until=until))


def run_redrives(played: Stage) -> None:
    """Requeue what outages left, once alerts have opened: one ends, one fails in part, one waits.

    The couriers answer again since the days were settled; the rest does from here on.
    """
    both = {STRIPE.name: "open", SHOP.name: "open"}
    wait(lambda: _alerts_now() == both, seconds=ALERT_SECONDS)
    played.sink.control(outage=False)
    express = open_letters(SHOP, kind="standard-webhooks.order.express_paid")
    _redrive(express, "the courier answers again", how="ramp")
    invoices = open_letters(BILLING, kind="generic-hmac.invoice.issued")
    _redrive(invoices, "postings are taken again", how="steady")
    orders = open_letters(SHOP, kind="standard-webhooks.order.paid")
    _redrive(orders, "one parcel first, to be sure", how="one")


def aftermath() -> Facts:
    """Tell what became of it, once everything that people began has come to rest.

    Whoever waits moves things on, as beat does: on a busy machine its ticks come late.
    """
    wait(_redrives_rest, seconds=SETTLE_SECONDS)
    wait(lambda: _letters() == AFTERMATH["open_letters"], seconds=SETTLE_SECONDS)
    wait(lambda: _alerts_now() == AFTERMATH["alerts"], seconds=ALERT_SECONDS)
    causes = LetterGroup.objects.all()
    return {
        "redrives": _redrives(),
        "open_letters": _letters(),
        "came_back": DeadLetter.objects.open().filter(round__gt=1).count(),
        "alerts": _alerts(),
        "causes_noted": causes.count(),
        "causes_muted": causes.filter(muted_until__gt=timezone.now()).count(),
    }


AFTERMATH: Facts = {
    "redrives": [
        {"source": SHOP.name, "state": "done", "succeeded": 38},
        {"source": BILLING.name, "state": "done", "succeeded": 12, "failed_again": 6},
        {"source": SHOP.name, "state": "paused", "succeeded": 1, "pending": 7},
    ],
    "open_letters": {
        f"{STRIPE.name} failed": 44,
        f"{STRIPE.name} unparseable": 2,
        f"{STRIPE.name} unroutable": 6,
        f"{BILLING.name} failed": 6,
        f"{SHOP.name} failed": 7,
    },
    "came_back": 6,
    "alerts": {STRIPE.name: "open", SHOP.name: "resolved"},
    "causes_noted": 2,
    "causes_muted": 1,
}
"""What `aftermath` must tell, with the troubles that the demo's days have."""


def _note(letter: DeadLetter, note: Note) -> None:
    cause = Cause(letter.source, letter.kind, letter.fingerprint)
    write_note(cause, note, by("olga", letter.tenant))


def _redrive(letters: Letters, reason: str, *, how: str) -> None:
    first = letters[0]
    act = by("olga", first.tenant, reason)
    asked = f"source={first.source.slug}&kind={first.kind}"
    frozen = work.freeze(letters, act, asked=asked, now=timezone.now())
    pace = work.Pace(how=how, rate=FAST, stop_percent=PATIENT, stop_after=10)  # type: ignore[arg-type]  # a word of its own
    # Their provider remembers its answers by key, so whoever cannot tell may ask again.
    started = work.start(frozen, act, work.Plan(pace=pace, include_cannot_tell=True))
    if started.state == Redrive.State.WAITING:
        work.approve(started, by("amir", first.tenant, "seen with the courier"))


def _redrives() -> list[Facts]:
    return [_told(one) for one in Redrive.objects.order_by("pk")]


def _redrives_rest() -> bool:
    work.advance(timezone.now())
    return bool(_redrives() == AFTERMATH["redrives"])


def _told(redrive: Redrive) -> Facts:
    outcomes = ("succeeded", "failed_again", "pending", "running")
    counts = {name: row(redrive).get(name) for name in outcomes}
    source = redrive.asked.partition("&")[0].removeprefix("source=")
    rest = {name: number for name, number in counts.items() if number}
    return {"source": source, "state": redrive.state, **rest}


def _letters() -> Facts:
    found = DeadLetter.objects.open().values_list("source__slug", "outcome")
    return dict(Counter(f"{slug} {outcome}" for slug, outcome in found))


def _alerts_now() -> Facts:
    evaluate("command")
    return _alerts()


def _alerts() -> Facts:
    """Tell of each source whether its alert on open letters is open, by its newest one."""
    told = Alert.objects.filter(rule__measure=AlertRule.Measure.OPEN_LETTERS)
    opened = told.exclude(opened_at=None).order_by("pk")
    return dict(opened.values_list("source__slug", "status"))
