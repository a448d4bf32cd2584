"""A busy morning for a browser to look at: two sources, a bad release, a late statement."""

from datetime import timedelta

from django.utils import timezone

from reliability.alerts.shipped import ship_rules
from reliability.models import Alert, AlertRule, DeadLetter, Report, Run, Source, Tenant
from tests.console import rows

ERRORS = [
    ("failed", "KeyError", "'balance_transaction'", "stripe.payment_intent.succeeded", 7800),
    ("failed", "LedgerRejected", "422 period_locked: NL-02 is closed for 2026-10",
     "stripe.charge.refunded", -1840),
    ("unknown", "", "", "stripe.payout.paid", 368690),
    ("unroutable", "", "", "stripe.early_fraud_warning.created", 750),
]  # fmt: skip
REASONS = {"unknown": "WorkerLost: no start was ended", "unroutable": "No route for this kind"}
PAYLOAD = b"""{"id": "evt_1", "type": "charge.refunded", "created": 1791888838, "livemode": true,
"data": {"object": {"id": "ch_3QJ8vKLm2eZvKYlo", "amount_refunded": 1840, "currency": "eur",
"billing_details": {"email": "jo@customer.example", "name": "Jo <b>Bloggs</b>"},
"metadata": {"cost_centre": "NL-02", "note": "</pre><script>alert(1)</script>"}}}}"""


def busy_morning(letters: int = 30) -> Tenant:
    """Build the scene; the newest letter is a refund of two rounds, with a duplicate delivery."""
    acme = rows.tenant("acme")
    live = rows.source(acme, "stripe-live", zone="Europe/Amsterdam")
    rows.source(acme, "github", preset="github")
    rules = ship_rules(acme, ["on-call@acme.example"])
    for n in range(letters):
        _letter(live, n)
    for n in range(12):
        done = rows.job(rows.key(live, at=timezone.now() - timedelta(minutes=n)), "done")
        rows.receipt(done.key, "duplicate")
    _watched(acme, live, rules[0], letters)
    return acme


def _letter(of: Source, n: int) -> DeadLetter:
    outcome, error, message, kind, amount = ERRORS[n % 7 % len(ERRORS)]
    dead = rows.letter(
        of,
        amount_minor=amount + 100 * n,
        currency="EUR",
        exponent=2,
        outcome=outcome,
        error_type=error,
        message=message,
        fingerprint=f"{error}: {message}" if error else REASONS[outcome],
        reason="5 of 5 failed, 1 lost" if error else REASONS[outcome],
        buried_at=timezone.now() - timedelta(minutes=9 + 7 * n),
        claimed={"kind": kind, "raw": PAYLOAD},
    )
    rows.receipt(dead.job.key, "duplicate", at=dead.buried_at)
    return dead


def _watched(owner: Tenant, of: Source, rule: AlertRule, letters: int) -> None:
    now = timezone.now()
    for n in range(5):
        Run.objects.create(
            job="sweep", trigger="beat", ok=True, started_at=now - timedelta(minutes=2 * n),
            ended_at=now - timedelta(minutes=2 * n, seconds=-1),
            facts={"rescued": 1 if n == 3 else 0},
        )  # fmt: skip
    Alert.objects.create(
        tenant=owner, rule=rule, source=of, status="open", since=now - timedelta(minutes=31),
        opened_at=now - timedelta(minutes=26), told_at=now - timedelta(minutes=26), value=letters,
        peak=letters,
    )  # fmt: skip
    yesterday = (now - timedelta(days=1)).date()
    Report.objects.create(
        tenant=owner, source=of, day=yesterday, version=1, completeness="complete",
        starts_at=now - timedelta(days=1), ends_at=now, inputs_sha256=bytes(32),
        counts={"matched": 18404, "missing": 3}, created_at=now, created_by="beat",
    )  # fmt: skip
