"""Tells an invented month to the product: sources, events with what is wrong, statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from typing import Any

from reliability.claim.accept import Asked, claim
from reliability.handlers import MappedOperation
from reliability.models import Job, Report, Source
from reliability.reconcile.statement import Refused, import_statement, receive
from tests.database import world
from tests.database.days import bring
from tests.proof import months
from tests.proof.months import ACCOUNTS, BANK, ONE_DAY, SHOP, STRIPE, Account, Month, Movement
from tests.proof.second_look import Told

AT_ONCE = 500
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


@contextmanager
def handled() -> Iterator[None]:
    """Have handlers for what happens in a month."""
    with (
        world.local(KINDS["charge"], lambda event: None),
        world.local(KINDS["refund"], lambda event: None),
    ):
        yield


class Feed:
    """What was told so far: ``ours`` by account and reference, ``given`` statements by day."""

    def __init__(self, month: Month) -> None:
        self.month = month
        self.wrong: list[str] = []
        """What was not as expected, in sentences."""
        self.sources = {account.name: self._source(account) for account in ACCOUNTS}
        self.ours: dict[str, dict[str, Told]] = {account.name: {} for account in ACCOUNTS}
        self.given: dict[tuple[str, date], list[Movement]] = {}

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
            today = self.month.happened(account.name, day)
            self.take_in(account.name, [m for m in today if m.fate not in {"never", "late"}])
            self.again(account.name, [m for m in today if m.fate == "twice_ours"])

    def take_in(self, account: str, movements: Sequence[Movement]) -> None:
        for start in range(0, len(movements), AT_ONCE):
            part = movements[start : start + AT_ONCE]
            fates = claim(self.sources[account], [_asked(m) for m in part])
            self.expect("fates", {fate.verdict for fate in fates}, {"accepted"})
            done = [
                fate.job_id
                for fate, m in zip(fates, part, strict=True)
                if m.fate != "dead" and fate.job_id
            ]
            Job.objects.filter(public_id__in=done).update(
                state="done", ended_at=datetime.now(UTC)
            )
        for m in movements:
            amount = m.signed_minor + (m.fate == "changed") * (
                m.signed_minor // m.amount_minor
            )
            self.ours[account][m.reference] = Told(
                m.reference, amount, m.at, dead=m.fate == "dead"
            )
            if m.fate == "dead":
                bring(Job.objects.get(key__key=f"evt_{m.reference}"), "dead")

    def again(self, account: str, movements: Sequence[Movement]) -> None:
        """Tell the same operations under other event keys: none is done twice."""
        if not movements:
            return
        fates = claim(self.sources[account], [_asked(m, "-again") for m in movements])
        self.expect("fates of repeats", {fate.verdict for fate in fates}, {"absorbed"})

    def statements(self, day: date) -> None:
        """Give each account's statement of a day, as far as it comes; amends come a day later."""
        for account in ACCOUNTS:
            if months.is_open(account, day) and (account.name, day) != self.month.missing:
                self._give(account.name, day, first=True)
        before = day - ONE_DAY
        for name, odd in (self.month.missing, self.month.truncated, self.month.revised):
            if odd == before:
                self._give(name, odd, first=False)
        if self.month.resent[1] == before:
            known = Report.objects.count()
            self._give(*self.month.resent, first=True)
            self.expect("reports after a re-sent file", Report.objects.count(), known)

    def _give(self, account: str, day: date, *, first: bool) -> None:
        content = months.file_of(self.month, account, day, first=first)
        artefact = receive(
            self.sources[account], name=f"{account}.csv", content=content, by="m"
        )
        read = import_statement(artefact, day)
        assert not isinstance(read, Refused), read.sentence
        self.given[account, day] = months.rows_of(self.month, account, day, first=first)

    def expect(self, what: str, told: Any, expected: Any) -> None:
        if told != expected:
            self.wrong.append(f"{what}: {_difference(told, expected)}")


def _asked(movement: Movement, suffix: str = "") -> Asked:
    mapped = MappedOperation(
        operation_class=movement.kind,
        reference=movement.reference,
        amount_minor=movement.amount_minor + (1 if movement.fate == "changed" else 0),
        currency=movement.currency,
        exponent=months.DECIMALS[movement.currency],
        occurred_at=movement.at,
    )
    key = f"evt_{movement.reference}{suffix}"
    return Asked(
        key=key, kind=KINDS[movement.kind], body=b"{}", queue="local", operation=mapped
    )


def _difference(told: Any, expected: Any) -> str:
    """Show what is too much and what is lacking, a few of each."""
    if isinstance(told, set | Counter):
        more, less = list(told - expected)[:5], list(expected - told)[:5]
        return f"too much {more}, lacking {less}"
    return f"{told} instead of {expected}"
