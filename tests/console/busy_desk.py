"""A desk with something on every page, brought about by the verbs that people and workers use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, time, timedelta

from django.test import Client
from django.utils import timezone

from reliability.alerts.evaluate import evaluate
from reliability.alerts.shipped import ship_rules
from reliability.alerts.silences import Window, silence
from reliability.claim import refusals
from reliability.claim.accept import Asked
from reliability.errors import PermanentError
from reliability.handlers import Event, MappedOperation
from reliability.models import DeadLetter, Discrepancy, Job, Report, Source, Tenant
from reliability.reconcile.discrepancies import resolve as settle_by_hand
from reliability.reconcile.ignoring import Wanted, add_rule
from reliability.reconcile.recover import recover
from reliability.sweep.stalled import sweep
from reliability.work import redrive
from reliability.work.causes import Cause, Note, write_note
from reliability.work.dead_letters import Act, Seen, discard, requeue, resolve
from reliability.work.holds import pause
from reliability.work.lease import take
from reliability.work.tokens import make_token
from tests.console import rows
from tests.database import world
from tests.database.days import Row, a_source, operation, report

CHARGE, REFUND, UPDATE = (
    "stripe.charge.succeeded",
    "stripe.charge.refunded",
    "stripe.customer.updated",
)
UNITS = (("EUR", 2, 1840), ("JPY", 0, 480), ("USD", 2, 120_050), ("EUR", 2, -915))
DYING, GOOD = 63, 57
"""More than a page of each, so that numbers and rows meet across pages."""
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date()


class LedgerClosed(PermanentError):
    """What the handler of a dying event raises."""


def handle(event: Event) -> None:
    if event.key.startswith("evt_dies"):
        raise LedgerClosed("422 period closed")


@contextmanager
def kinds() -> Iterator[None]:
    """Register what the desk's events are handled by."""
    with ExitStack() as held:
        for name in (CHARGE, REFUND, UPDATE):
            held.enter_context(world.local(name, handle))
        yield


def busy_desk() -> Client:
    """Set everything up inside `kinds()`; return an admin's browser."""
    acme = world.tenant("acme")
    live = world.source("stripe-live")
    Source.objects.filter(pk=live.pk).update(created_at=timezone.now() - timedelta(days=3))
    mara = Act(acme, "mara", reason="as agreed")
    rules = ship_rules(acme, ["on-call@acme.example"])
    _events(live)
    _refused(live)
    _decided(live, mara)
    _redriven(live, mara)
    _compared(mara)
    _set_up(live, mara)
    window = Window(
        from_at=timezone.now(), until_at=timezone.now() + timedelta(hours=1), rule=rules[0]
    )
    silence(window, mara)
    sweep("beat")
    evaluate("beat")
    return rows.signed_in(rows.member(acme, "admin", "mara"))


def _events(live: Source) -> None:
    dying = [_asked(f"evt_dies_{n:03d}", n) for n in range(DYING)]
    good = [_asked(f"evt_good_{n:03d}", n) for n in range(GOOD)]
    world.take_in(live, *dying, *good)
    world.take_in(live, *good[:7])
    again = world.asked("evt_again_1", REFUND, operation=good[0].operation)
    world.take_in(live, again)
    world.work_local()


def _asked(key: str, n: int) -> Asked:
    currency, exponent, minor = UNITS[n % len(UNITS)]
    operation = MappedOperation(
        operation_class="refund" if minor < 0 else "charge", reference=f"op_{key}",
        amount_minor=minor + n, currency=currency, exponent=exponent,
    )  # fmt: skip
    return world.asked(key, REFUND if minor < 0 else CHARGE, operation=operation)


def _refused(live: Source) -> None:
    for _ in range(3):
        Client().post(f"/hooks/{live.endpoint_token}/", b"{}", content_type="application/json")
    refusals.flush()


def _open(live: Source) -> list[Seen]:
    letters = (
        DeadLetter.objects.open().filter(source=live).select_related("job").order_by("pk")
    )
    return [Seen(letter.pk, letter.job.version) for letter in letters]


def _decided(live: Source, mara: Act) -> None:
    """Discard two, resolve one, and let three come back; note and mute their cause."""
    discard(_open(live)[:2], mara)
    resolve(_open(live)[:1], mara)
    requeue(_open(live)[:3], mara)
    _let_it_be_time()
    world.work_local()
    letter = DeadLetter.objects.open().filter(source=live).order_by("pk")[0]
    cause = Cause(live, letter.kind, letter.fingerprint)
    write_note(cause, Note(owner="mara", muted_until=timezone.now() + timedelta(days=1)), mara)


def _redriven(live: Source, mara: Act) -> None:
    """Requeue the refunds, of which all fail again; freeze another set and leave it."""
    refunds = DeadLetter.objects.open().filter(source=live, kind=REFUND)
    now = timezone.now()
    asked = f"source={live.slug}&kind={REFUND}"
    made = redrive.freeze(refunds, mara, asked=asked, now=now)
    pace = redrive.Pace(how="steady", rate=5, stop_percent=100, stop_after=10)
    redrive.start(made, mara, redrive.Plan(pace=pace, include_cannot_tell=True))
    for seconds in (2, 4):
        redrive.advance(now + timedelta(seconds=seconds))
        _let_it_be_time()
        world.work_local()
    redrive.advance(now + timedelta(seconds=6))
    charges = DeadLetter.objects.open().filter(source=live, kind=CHARGE)
    redrive.freeze(
        charges, mara, asked=f"source={live.slug}&kind={CHARGE}", now=timezone.now()
    )


def _let_it_be_time() -> None:
    """Let whatever is requeued be due, as ten seconds would."""
    for job in Job.objects.ready():
        world.make_due(job)


def _compared(mara: Act) -> None:
    """Compare two days of a shop: differences of each sort, one ignored, recovered and settled."""
    shop = a_source("shop", zone="UTC")
    day, before = YESTERDAY, YESTERDAY - timedelta(days=1)
    add_rule(shop, _monitor(), mara)
    for nth, (reference, minor) in enumerate(
        (("ch_2", 950), ("ch_5", 120_000), ("ch_9", 3500))
    ):
        operation(shop, reference, minor, occurred_at=_noon(day) + timedelta(minutes=nth))
    operation(shop, "ch_before", 1000, occurred_at=_noon(before))
    report(
        shop, _row("ch_before", "10.00", before), _row("ch_lost", "77.00", before), day=before
    )
    lines = {
        "ch_1": "249.00",
        "ch_2": "10.00",
        "ch_5": "1200.00",
        "ch_6": "3.00",
        "ch_7": "4.00",
    }
    told = [_row(reference, amount, day) for reference, amount in lines.items()]
    report(shop, *told, _row("ch_monitor_1", "1.00", day), day=day)
    report(shop, _row("ch_3", "8.00", day), day=day - timedelta(days=2), declared=5)
    found = {one.reference: one for one in Discrepancy.objects.open().filter(source=shop)}
    recover(found["ch_6"], mara, from_line=True)
    settle_by_hand(found["ch_7"], mara)


def _monitor() -> Wanted:
    return Wanted(
        name="monitor", family="missing", operation_class="charge", starts_with="ch_monitor",
        until=YESTERDAY + timedelta(days=30),
    )  # fmt: skip


def _noon(day: object) -> datetime:
    return datetime.combine(day, time(12), UTC)  # type: ignore[arg-type]


def _row(reference: str, amount: str, day: object) -> Row:
    return Row(reference, amount, occurred=_noon(day).isoformat())


def _set_up(live: Source, mara: Act) -> None:
    """Leave work in every state, a paused kind, a destination, a token and a view."""
    pause(UPDATE, mara)
    held = [world.asked(f"evt_held_{n}", UPDATE) for n in range(3)]
    world.take_in(live, *held)
    pause(UPDATE, mara)
    world.take_in(live, *(_asked(f"evt_waits_{n}", n) for n in range(4)))
    take("local", limit=2)
    rows.destination(live)
    rows.saved_view(live, name="live letters")
    make_token("ledger", mara)
    assert Report.objects.filter(current=True).count() == 3


def tenant() -> Tenant:
    return world.tenant("acme")
