"""Months with planted wrongs: exactly those are found, nothing else, and all can be cleared.

``RELIABILITY_MONTHS`` sets how many months, ``RELIABILITY_MONTH_DAY`` how many movements a source
has on a day; the full measure is 10 and 670 (20 000 a month), with one day of 200 000.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.db import connection

from reliability.claim.accept import Asked, claim
from reliability.claim.door import forget
from reliability.handlers import MappedOperation
from reliability.models import Discrepancy, Job, Report, Source
from reliability.reconcile import plan
from reliability.reconcile.discrepancies import resolve, settle
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.recover import Asked as AskedForASecond
from reliability.reconcile.recover import Recovered, recover
from reliability.reconcile.statement import Refused, import_statement, receive
from reliability.work.dead_letters import Act
from tests.database import world
from tests.database.days import bring
from tests.proof import months
from tests.proof.months import ACCOUNTS, BANK, SHOP, STRIPE, Account, Month, Movement

pytestmark = [pytest.mark.django_db, pytest.mark.proof, pytest.mark.timeout(3600)]

COUNT = int(os.environ.get("RELIABILITY_MONTHS", "2"))
PER_DAY = int(os.environ.get("RELIABILITY_MONTH_DAY", "20"))
BIG_DAY = int(os.environ.get("RELIABILITY_MONTH_BIG_DAY", "200"))
MONTHS = [
    date(2026, 10, 1),
    date(2025, 12, 1),
    date(2026, 3, 1),
    date(2026, 6, 1),
    date(2024, 2, 1),
]
KINDS = {"charge": "stripe.charge.succeeded", "refund": "stripe.refund.created"}
FORMATS: dict[str, dict[str, Any]] = {
    STRIPE.name: {"statement_format": "stripe-balance-csv"},
    BANK.name: {
        "statement_format": "mapped-csv",
        "statement_options": {
            "columns": {
                "id": "id", "kind": "kind", "amount": "amount", "currency": "currency",
                "occurred": "occurred", "booked": "booked",
            },
            "references": {"reference": "reference"},
            "rows": [{"column": "id", "equals": "ROWS", "is": "count", "figure": "amount"}],
            "cadence": "business days",
            "holidays": "ECB",
        },
    },
    SHOP.name: {
        "statement_format": "mapped-csv",
        "statement_options": {
            "columns": {
                "id": "nr", "kind": "art", "amount": "betrag", "currency": "waehrung",
                "occurred": "zeit",
            },
            "references": {"reference": "beleg"},
            "encoding": "cp1252", "separator": ";", "decimal": ",", "preamble_rows_max": 3,
            "rows": [{"column": "nr", "starts": "Summe", "is": "count", "figure": "betrag"}],
        },
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    forget()
    with (
        world.local(KINDS["charge"], lambda event: None),
        world.local(KINDS["refund"], lambda event: None),
    ):
        yield


class Told:
    """One month as it is told to the product, day by day."""

    def __init__(self, month: Month) -> None:
        self.month = month
        self.sources = {account.name: self._source(account) for account in ACCOUNTS}
        self.sent: set[str] = set()

    def _source(self, account: Account) -> Source:
        made = world.source(account.name)
        Source.objects.filter(pk=made.pk).update(
            zone=account.zone, statement_kinds=["charge", "refund"],
            created_at=datetime.combine(self.month.days[0], time(12), UTC),
            **FORMATS[account.name],
        )  # fmt: skip
        made.refresh_from_db()
        return made

    def webhooks(self, day: date) -> None:
        """Send what happened on a day; some never, some changed, some again for one charge."""
        for account in ACCOUNTS:
            zone = ZoneInfo(account.zone)
            today = [
                m for m in self.month.movements
                if m.account == account.name and m.at.astimezone(zone).date() == day
            ]  # fmt: skip
            sent = [m for m in today if m.fate not in {"never", "late"}]
            self.take_in(account.name, sent)
            again = [m for m in today if m.fate == "twice_ours"]
            self.take_in(account.name, again, suffix="-again")

    def take_in(self, account: str, movements: list[Movement], suffix: str = "") -> None:
        asked = [_asked(m, suffix) for m in movements]
        fates = []
        for start in range(0, len(asked), 500):
            fates += claim(self.sources[account], asked[start : start + 500])
        assert {fate.verdict for fate in fates} <= {"absorbed" if suffix else "accepted"}
        ended = dict(zip([m.reference for m in movements], fates, strict=True))
        done = [ended[m.reference].job_id for m in movements if m.fate != "dead"]
        Job.objects.filter(public_id__in=[one for one in done if one]).update(
            state="done", ended_at=datetime.now(UTC)
        )
        for m in movements:
            if m.fate == "dead" and not suffix:
                bring(Job.objects.get(key__key=f"evt_{m.reference}"), "dead")

    def statements(self, day: date) -> None:
        """Give each account's statement of a day, as far as it comes."""
        for account in ACCOUNTS:
            if months.is_open(account, day) and (account.name, day) != self.month.missing:
                self.give(account.name, day)
        before = day - timedelta(days=1)
        for name, odd in (self.month.missing, self.month.truncated, self.month.revised):
            if odd == before:
                self.give(name, odd, first=False)
        if self.month.resent[1] == before:
            self.give(*self.month.resent)

    def give(self, account: str, day: date, *, first: bool = True) -> None:
        content = months.file_of(self.month, account, day, first=first)
        artefact = receive(
            self.sources[account], name=f"{account}.csv", content=content, by="m"
        )
        read = import_statement(artefact, day)
        assert not isinstance(read, Refused), read.sentence

    def go(self) -> None:
        """Live through the month: webhooks by day, statements and the planner after it."""
        for day in self.month.days:
            with time_machine.travel(_evening(day), tick=False):
                self.webhooks(day)
            with time_machine.travel(_evening(day + timedelta(days=1)), tick=False):
                self.statements(day)
                plan("beat")
                while plan("beat").left:
                    pass
                self.check(day)

    def check(self, day: date) -> None:
        """Hold each report of the day to what a plain look at both sides says."""
        for account in ACCOUNTS:
            source = self.sources[account.name]
            report = Report.objects.filter(source=source, day=day, current=True).first()
            if not months.is_open(account, day):
                assert report is None
                continue
            assert report is not None
            assert report.completeness == _expected(self.month, account, day)
            if report.completeness in {"complete", "unproven"}:
                odd = (account.name, day) == self.month.revised
                assert _counts(report) == plainly(self.month, account, day, wrong_first=odd), (
                    account.name, day,
                )  # fmt: skip


def _asked(movement: Movement, suffix: str) -> Asked:
    amount = movement.amount_minor + (1 if movement.fate == "changed" else 0)
    mapped = MappedOperation(
        operation_class=movement.kind,
        reference=movement.reference,
        amount_minor=amount,
        currency=movement.currency,
        exponent=months.DECIMALS[movement.currency],
        occurred_at=movement.at,
    )
    key = f"evt_{movement.reference}{suffix}"
    return Asked(
        key=key, kind=KINDS[movement.kind], body=b"{}", queue="local", operation=mapped
    )


def _evening(day: date) -> datetime:
    """Return an instant at which the day's statement is overdue everywhere."""
    return datetime.combine(day, time(23, 30), UTC)


def _expected(month: Month, account: Account, day: date) -> str:
    if (account.name, day) == month.missing:
        return "absent"
    if (account.name, day) == month.truncated:
        return "incomplete"
    return "unproven" if account is STRIPE else "complete"


def _counts(report: Report) -> Counter[str]:
    return Counter({name: n for name, n in report.counts.items() if n})


def plainly(month: Month, account: Account, day: date, *, wrong_first: bool) -> Counter[str]:
    """Tell a day's verdicts from the invention alone: a second, plain opinion."""
    found: Counter[str] = Counter()
    for n, m in enumerate(month.listed(account.name, day)):
        # The bank's rows say when it happened, and when they booked it.
        same_day = account is BANK or m.listed_at == m.at
        match m.fate:
            case "never" | "late" | "dead":
                found["missing"] += 1
            case "changed":
                found["amount_mismatch"] += 1
            case "twice_theirs":
                found["matched"] += 1
                found["duplicate_theirs"] += 1
            case _ if wrong_first and n == 0:
                found["amount_mismatch"] += 1
            case _:
                found["matched" if same_day else "matched_timing"] += 1
    for m in month.movements:
        happened = m.at.astimezone(ZoneInfo(account.zone)).date()
        if m.account == account.name and happened == day and m.listed_on > day:
            found["in_transit"] += 1
    return found


@pytest.mark.parametrize("seed", range(COUNT))
def test_exactly_what_was_planted_in_a_month_is_found_and_can_be_cleared(
    seed: int, tmp_path: Path
) -> None:
    month = months.invent(seed, MONTHS[seed % len(MONTHS)], per_day=PER_DAY, big_day=BIG_DAY)
    months.write_planted(month, tmp_path / "planted.json")
    told = Told(month)
    told.go()
    planted = {(p.account, p.reference, p.verdict, p.cause) for p in month.planted}
    late = [m for m in month.movements if m.fate == "late"]
    assert found(status="open") == planted | {
        (m.account, m.reference, "missing", "never_received") for m in late
    }
    assert len(found(status="resolved")) == 1
    end = _evening(month.days[-1] + timedelta(days=3))
    with time_machine.travel(end, tick=False):
        late_events_settle(told, late)
        assert found(status="open") == planted
        everything_is_cleared(told)
    assert Discrepancy.objects.open().count() == 0


def found(**only: str) -> set[tuple[str, str, str, str]]:
    rows = Discrepancy.objects.filter(**only)
    return set(rows.values_list("source__slug", "reference", "verdict", "cause"))


def late_events_settle(told: Told, late: list[Movement]) -> None:
    for account in ACCOUNTS:
        told.take_in(account.name, [m for m in late if m.account == account.name])
    assert settle().closed == len(late)


def everything_is_cleared(told: Told) -> None:
    """Recover what is missing, settle the rest by hand, and compare every touched day again.

    What is worth more than one person may recover is asked for by one and recovered by another.
    """
    act = Act(tenant=world.tenant(), actor="mara", reason="booked by hand, FIN-12")
    second = replace(act, actor="noor")
    for one in Discrepancy.objects.open().select_related("source"):
        if one.family == "missing":
            done = recover(one, act)
            if isinstance(done, AskedForASecond):
                done = recover(done.discrepancy, second)
            assert isinstance(done, Recovered)
        else:
            resolve(one, act)
    Job.objects.filter(state="ready").update(state="done", ended_at=datetime.now(UTC))
    settle()
    for source in told.sources.values():
        days = Discrepancy.objects.filter(source=source).values_list("last_day", flat=True)
        for day in sorted(set(days)):
            compare_onwards(source, day, by="mara")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM reliability_processedkey WHERE absorbed")
        assert cursor.fetchone() == (months.PLANTED["twice_ours"],)
