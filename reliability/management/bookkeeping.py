"""What finance does in the demo: statements of three days, one cut off; signed, ignored, recovered."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from reliability.management.asking import source_called, tenant_called
from reliability.management.company import by, kept, wait
from reliability.management.progress import say
from reliability.management.stage import ask
from reliability.models import Discrepancy, Report
from reliability.proof.cast import BILLING, STRIPE, StorySource
from reliability.proof.chronicle import Chronicle, cut, ledger_csv
from reliability.proof.story import Story
from reliability.reconcile.discrepancies import comment, settle, take
from reliability.reconcile.ignoring import Wanted, add_rule
from reliability.reconcile.recover import recover
from reliability.reconcile.signing import prepare, sign

RECOVERED_SECONDS = 60
PREFIX = 9
"""Characters of a reference that the ignore rule names."""
Facts = dict[str, Any]


def compare_days(folder: Path, told: Chronicle) -> Facts:
    """Give every day its statements, and count by cause what the last compare misses.

    The first day agrees, the second day's file is cut off, and of the last day a rule ignores one
    charge that was never sent.
    """
    first, second, last = told.days
    for day in (first, second):
        _compare(folder, BILLING, day, ledger_csv(day))
    _compare(folder, STRIPE, first, first.statement_csv())
    _compare(folder, STRIPE, second, cut(second.statement_csv()))
    _ignore_one(last)
    report = _compare(folder, STRIPE, last, last.statement_csv())
    found = report.get("discrepancies", [])
    causes = Counter(one["cause"] for one in found if one["verdict"] == "missing")
    others = len(found) - causes.total()
    say(f"the daily compare: {report.get('completeness', report)}, {len(found)} discrepancies")
    ignored = Discrepancy.objects.filter(status=Discrepancy.Status.IGNORED).count()
    rest = {"ignored": ignored, "other discrepancies": others}
    return dict(causes) | {name: number for name, number in rest.items() if number}


def expected_missing(story: Story) -> Facts:
    """Say what the last day's compare must miss: one charge never received is ignored by a rule."""
    missing = story.expected()["missing"]
    return {**missing, "never_received": missing["never_received"] - 1, "ignored": 1}


def close_the_books() -> None:
    """Sign the day that agrees, with two people; recover one charge and look into another."""
    for name in (BILLING, STRIPE):
        report = _reports(name).order_by("day")[0]
        tenant = report.tenant
        kept(prepare(report, by("olga", tenant, "gone through, nothing open")))
        kept(sign(report, by("amir", tenant)))
    tenant = tenant_called(STRIPE.tenant)
    missing = Discrepancy.objects.open().filter(tenant=tenant, cause="never_received")
    first, second = missing.order_by("pk")[:2]
    kept(recover(first, by("olga", tenant, "it stands on their statement"), from_line=True))
    looked = kept(take(second, by("olga", tenant))).discrepancy
    kept(comment(looked, by("olga", tenant, "asked the provider for the delivery attempts")))


def books() -> Facts:
    """Tell what the reports say, by source and day, and what became of the discrepancies."""
    recovered = Discrepancy.objects.filter(status=Discrepancy.Status.RECOVERED)
    wait(lambda: bool(settle()) and recovered.exists(), seconds=RECOVERED_SECONDS)
    return {
        "reports": {
            name.name: [
                report.completeness + (", signed" if report.signed_by else "")
                for report in _reports(name).order_by("day")
            ]
            for name in (BILLING, STRIPE)
        },
        "recovered": recovered.count(),
    }


BOOKS = {
    "reports": {
        BILLING.name: ["complete, signed", "complete"],
        STRIPE.name: ["unproven, signed", "incomplete", "unproven"],
    },
    "recovered": 1,
}
"""What `books` must tell; Stripe's file declares no totals, so a good one proves no completeness."""


def _compare(folder: Path, of: StorySource, story: Story, content: bytes) -> Facts:
    file = folder / f"{of.name}-{story.day}.csv"
    file.write_bytes(content)
    source = [f"--source={of.name}", f"--tenant={of.tenant}"]
    return dict(ask("reconcile", *source, f"--day={story.day}", f"--file={file}"))


def _ignore_one(story: Story) -> None:
    """Add the rule before the day is compared: it decides about reports yet to be made."""
    tenant = tenant_called(STRIPE.tenant)
    operation = story.never_sent[0].operation
    assert operation is not None
    wanted = Wanted(
        name="the shop's own monitor", family="missing", operation_class="charge",
        starts_with=operation.reference[:PREFIX],
        until=(timezone.now() + timedelta(days=90)).date(),
    )  # fmt: skip
    reason = "the monitor buys from itself and sends no webhook"
    kept(add_rule(source_called(STRIPE.name, tenant), wanted, by("admin", tenant, reason)))


def _reports(of: StorySource) -> Any:
    return Report.objects.filter(
        source__slug=of.name, tenant__slug=of.tenant, current=True
    ).select_related("tenant")
