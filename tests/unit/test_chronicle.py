"""Several days are one chronicle: their figures add up, and a broken statement stays readable."""

import csv
from datetime import date, timedelta
from io import StringIO

import pytest

from reliability.proof.afternoon import Afternoon, account_opened
from reliability.proof.cast import BILLING
from reliability.proof.chronicle import Chronicle, added, cut, ledger_csv
from reliability.proof.invention import FAILING_CUSTOMER
from reliability.proof.story import Story, Troubles

DAY = date(2026, 11, 29)
FIRST = Story(seed=1, events=40, day=DAY - timedelta(days=1))
SECOND = Story(
    seed=2, events=50, day=DAY, troubles=Troubles(failing_charges=4, broken=1, never_sent=3)
)
BOTH = Chronicle([FIRST, SECOND])


def test_the_days_are_delivered_one_after_the_other() -> None:
    delivered = BOTH.deliveries()
    assert tuple(delivered[:52]) == FIRST.deliveries()
    assert tuple(delivered[52:]) == SECOND.deliveries()
    assert BOTH.last is SECOND


def test_figures_add_up_name_by_name() -> None:
    some = {"sent": 3, "dead": {"failed": 2}}
    more = {"sent": 4, "dead": {"failed": 1, "unparseable": 5}, "mails": 6}
    assert added(some, more) == {
        "sent": 7, "dead": {"failed": 3, "unparseable": 5}, "mails": 6,
    }  # fmt: skip


def test_a_chronicle_expects_what_its_days_do() -> None:
    expected = BOTH.expected()
    assert expected["events"] == 90
    assert expected["sent"] == 90 + 12 + 15
    assert expected["dead"] == {"failed": 4, "unparseable": 1}


def test_the_ledger_lists_billings_operations_and_counts_them() -> None:
    *rows, last = csv.DictReader(StringIO(ledger_csv(SECOND).decode()))
    told = {
        e.operation.reference for e in SECOND.plan if e.source == BILLING.name and e.operation
    }
    assert {row["reference"] for row in rows} == told
    assert (last["id"], last["amount"]) == ("ROWS", str(len(told)))


def test_a_cut_statement_ends_within_a_row() -> None:
    whole = SECOND.statement_csv()
    torn = cut(whole)
    assert whole.startswith(torn)
    *full, last = csv.reader(StringIO(torn.decode()))
    assert {len(row) for row in full} == {15}
    assert len(last) == 7


def test_an_edit_opens_the_account_and_changes_nothing_else() -> None:
    (event, *_) = [e for e in SECOND.plan if e.customer == FAILING_CUSTOMER]
    edited = account_opened(event.body)
    assert FAILING_CUSTOMER.encode() not in edited
    assert len(edited) == len(event.body)


@pytest.mark.parametrize("seed", [1, 9])
def test_an_afternoon_is_the_same_for_its_seed(seed: int) -> None:
    one, other = Afternoon(seed, DAY), Afternoon(seed, DAY)
    assert one.deliveries() == other.deliveries()
    assert one.sent_on() == other.sent_on()
    kinds = [delivery.event.kind for delivery in Afternoon(seed, DAY).deliveries()]
    assert kinds.count("generic-hmac.invoice.issued") == 18
    assert kinds.count("stripe.radar.early_fraud_warning.created") == 6
