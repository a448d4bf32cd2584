"""Lives through an invented month and looks at each day, at what is open, and at its clearing."""

from __future__ import annotations

import time as clock
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import time_machine

from reliability.models import Discrepancy, Job, Report, Verdict
from reliability.reconcile import plan
from reliability.reconcile.discrepancies import resolve, settle
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.recover import Asked as AskedForASecond
from reliability.reconcile.recover import Recovered, recover
from reliability.work.dead_letters import Act
from tests.database import world
from tests.proof import months, second_look
from tests.proof.feed import Feed
from tests.proof.months import ACCOUNTS, BANK, ONE_DAY, STRIPE, Account, Month, Movement
from tests.proof.second_look import Frame, Told, Verdicts

GOOD = {"complete", "unproven"}
NEAR = timedelta(days=10)
"""No movement is listed on two days further apart."""
PEOPLE = ("mara", "noor")
Found = set[tuple[str, str, str, str]]
"""(source, reference, verdict, cause)."""


@dataclass
class Outcome:
    """What came of a month; ``wrong`` says in sentences what was not as it had been invented."""

    first: str
    operations: int
    planted: int = 0
    found: int = 0
    false_alarms: int = 0
    days_agreed: int = 0
    open_at_the_end: int = -1
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return asdict(self) | {"ok": not self.wrong, "seconds": round(self.seconds, 1)}


def live(month: Month) -> Outcome:
    """Go through a month and its clearing, on an empty database, with ``handled()``."""
    lived = Lived(month)
    began = clock.monotonic()
    lived.go()
    lived.judge()
    with time_machine.travel(_evening(month.days[-1] + 3 * ONE_DAY), tick=False):
        lived.clear()
    lived.outcome.seconds = clock.monotonic() - began
    return lived.outcome


class Lived:
    """One month as it is told to the product; the checks on the way only take notes."""

    def __init__(self, month: Month) -> None:
        self.month = month
        self.feed = Feed(month)
        self.outcome = Outcome(str(month.days[0]), len(month.movements), wrong=self.feed.wrong)

    def go(self) -> None:
        """Live through the days: webhooks in the evening, statements and the planner the next."""
        for day in self.month.days:
            with time_machine.travel(_evening(day), tick=False):
                self.feed.webhooks(day)
            with time_machine.travel(_evening(day + ONE_DAY), tick=False):
                self.feed.statements(day)
                while plan("beat").left:
                    pass
                for account in ACCOUNTS:
                    self._check(account, day, first=True)

    def judge(self) -> None:
        """Look at every day again with all statements there, then at what is open: the planted."""
        for day in self.month.days:
            for account in ACCOUNTS:
                self._check(account, day, first=False)
        planted: Found = {
            (p.account, p.reference, p.verdict, p.cause) for p in self.month.planted
        }
        late: Found = {
            (m.account, m.reference, "missing", "never_received") for m in self._of("late")
        }
        self.outcome.planted = len(planted | late)
        self.outcome.found = len(found("open") & (planted | late))
        self.outcome.false_alarms = len(found("open") - planted - late)
        self.feed.expect("open", found("open"), planted | late)
        self.feed.expect("closed by the revised file", len(found("resolved")), 1)

    def clear(self) -> None:
        """Let what is late come, recover the missing, settle the rest, and compare again."""
        self._late_events_settle()
        touched = {
            source: sorted(set(Discrepancy.objects.filter(source=source).values_list("last_day", flat=True)))
            for source in self.feed.sources.values()
        }  # fmt: skip
        self._decide()
        self._webhooks_of_what_was_recovered()
        Job.objects.filter(state="ready").update(state="done", ended_at=datetime.now(UTC))
        settle()
        for source, days in touched.items():
            for day in days:
                compare_onwards(source, day, by=PEOPLE[0])
        self.outcome.open_at_the_end = Discrepancy.objects.open().count()
        self.feed.expect("open at the end", self.outcome.open_at_the_end, 0)

    # What is looked at.

    def _check(self, account: Account, day: date, *, first: bool) -> None:
        report = Report.objects.filter(
            source=self.feed.sources[account.name], day=day, current=True
        ).first()
        where = f"{account.name} {day}"
        if not months.is_open(account, day):
            self.feed.expect(f"{where}, a day of rest", report, None)
            return
        completeness = report.completeness if report else "none"
        self.feed.expect(where, completeness, self._completeness(account, day, first=first))
        if report is None:
            return
        told = _stored(report)
        if completeness in GOOD:
            said = self._second_look(account, day, first=first)
            self.feed.expect(where, told, said)
            self.outcome.days_agreed += told == said
        else:
            accused = {verdict for _, verdict, _ in told} & {"missing", "unexpected"}
            self.feed.expect(f"{where}, incomplete", accused, set())

    def _second_look(self, account: Account, day: date, *, first: bool) -> Verdicts:
        zone = months.zone_of(account.name)
        theirs = [
            Told(m.reference, m.signed_minor, m.at if account is BANK else m.listed_at)
            for m in self.feed.given[account.name, day]
        ]
        frame = Frame(
            day=day,
            zone=zone,
            since=_midnight(self._since(account, day, first=first), account),
            ends=_midnight(day + ONE_DAY, account),
            grace=timedelta(hours=self.feed.sources[account.name].grace_hours),
            listed_on={
                m.reference: listed
                for (name, listed), rows in self.feed.given.items()
                if name == account.name and abs(listed - day) < NEAR and listed != day
                for m in rows
            },
        )
        return second_look.look(theirs, self.feed.ours[account.name], frame)

    def _since(self, account: Account, day: date, *, first: bool) -> date:
        """Return from which day on ours is to be explained: all that no report looked at yet.

        What the last day left in transit is among it; after a day without a usable report, and
        on the first of all, nothing before the day itself.
        """
        before = day - ONE_DAY
        while not months.is_open(account, before):
            before -= ONE_DAY
        if before < self.month.days[0]:
            return day
        usable = self._completeness(account, before, first=first) in GOOD
        return before if usable else day

    def _completeness(self, account: Account, day: date, *, first: bool) -> str:
        if first and (account.name, day) == self.month.missing:
            return "absent"
        if first and (account.name, day) == self.month.truncated:
            return "incomplete"
        if account is STRIPE and not self.month.listed(account.name, day):
            # Nothing in the file says that there was nothing.
            return "incomplete"
        return "unproven" if account is STRIPE else "complete"

    def _of(self, fate: str) -> list[Movement]:
        return [m for m in self.month.movements if m.fate == fate]

    # How it is cleared.

    def _late_events_settle(self) -> None:
        late = self._of("late")
        for account in ACCOUNTS:
            self.feed.take_in(account.name, [m for m in late if m.account == account.name])
        self.feed.expect("settled by late events", settle().closed, len(late))

    def _decide(self) -> None:
        """Recover what is missing, with a second person where one may not; resolve the rest."""
        one, two = (
            Act(tenant=world.tenant(), actor=name, reason="booked by hand, FIN-12")
            for name in PEOPLE
        )
        for item in Discrepancy.objects.open().select_related("source"):
            if item.family != "missing":
                resolve(item, one)
                continue
            done = recover(item, one)
            if isinstance(done, AskedForASecond):
                done = recover(done.discrepancy, two)
            self.feed.expect(f"recovery of {item.reference}", type(done), Recovered)

    def _webhooks_of_what_was_recovered(self) -> None:
        """Send after all what had never been sent: every one finds its operation claimed."""
        jobs = Job.objects.count()
        for account in ACCOUNTS:
            self.feed.again(
                account.name, [m for m in self._of("never") if m.account == account.name]
            )
        self.feed.expect("jobs after the late webhooks", Job.objects.count(), jobs)


def found(status: str) -> Found:
    """Return the discrepancies of a status."""
    rows = Discrepancy.objects.filter(status=status)
    return set(rows.values_list("source__slug", "reference", "verdict", "cause"))


def _stored(report: Report) -> Verdicts:
    rows = Verdict.objects.filter(report=report)
    return Verdicts(rows.values_list("reference", "verdict", "cause"))


def _evening(day: date) -> datetime:
    """Return an instant at which the day's statement is overdue everywhere."""
    return datetime.combine(day, time(23, 30), UTC)


def _midnight(day: date, account: Account) -> datetime:
    return datetime.combine(day, time(), months.zone_of(account.name)).astimezone(UTC)
