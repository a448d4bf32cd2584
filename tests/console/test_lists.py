"""Lists: strict filters, pages by key, a fixed number of queries, numbers that open their rows."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reliability.models import DeadLetter, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db

LISTS = [
    "/dead-letters/",
    "/jobs/",
    "/deliveries/",
    "/deliveries/refused/",
    "/audit/",
    "/runs/",
]


@pytest.mark.parametrize("address", LISTS)
@pytest.mark.parametrize(
    "query", ["raeson=x", "source=nowhere", "after=garbage", "after=_1", "source=a&source=b"]
)
def test_a_filter_that_is_not_understood_shows_nothing(
    operator: Client, address: str, query: str
) -> None:
    answer = operator.get(f"{address}?{query}")
    assert answer.status_code == 400
    assert b"Nothing is shown and nothing was done" in answer.content


@pytest.mark.parametrize(
    "query",
    [
        "status=opne", "outcome=fail", "age=5m", "rounds=x", "rounds=0", "rounds=1.5",
        "kind=%00", "state=dead",
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_read_is_refused(operator: Client, query: str) -> None:
    assert operator.get(f"/dead-letters/?{query}").status_code == 400


@pytest.mark.parametrize("query", ["deliveries/?replays=maybe", "runs/?ok=yes"])
def test_a_choice_is_never_guessed(operator: Client, query: str) -> None:
    assert operator.get(f"/{query}").status_code == 400


def _keys(answer: Any) -> list[str]:
    return re.findall(r"find=(evt_[a-z0-9]+)", answer.content.decode())


def test_each_filter_of_the_letters_keeps_what_it_names(
    acme: Tenant, operator: Client
) -> None:
    stripe, github = rows.source(acme), rows.source(acme, "github")
    now = timezone.now()
    rows.letter(stripe, "evt_plain")
    rows.letter(github, "evt_github")
    rows.letter(stripe, "evt_kind", claimed={"kind": "stripe.payout.paid"})
    rows.letter(stripe, "evt_unknown", outcome="unknown")
    rows.letter(stripe, "evt_keyerror", error_type="KeyError")
    rows.letter(stripe, "evt_discarded", status="discarded")
    rows.letter(stripe, "evt_old", buried_at=now - timedelta(days=8))
    rows.letter(stripe, "evt_back", round=3)
    rows.letter(stripe, "evt_cause", fingerprint="f2")
    for query, keys in {
        "source=github": {"evt_github"},
        "kind=stripe.payout.paid": {"evt_kind"},
        "outcome=unknown": {"evt_unknown"},
        "error=KeyError": {"evt_keyerror"},
        "status=discarded": {"evt_discarded"},
        "age=7d": {"evt_old"},
        "rounds=2": {"evt_back"},
        "key=evt_github": {"evt_github"},
        "cause=f2": {"evt_cause"},
    }.items():
        assert set(_keys(operator.get(f"/dead-letters/?{query}"))) == keys, query
    assert "evt_discarded" not in _keys(operator.get("/dead-letters/"))
    assert len(_keys(operator.get("/dead-letters/?status=all"))) == 9


def test_letters_that_come_while_somebody_pages_neither_repeat_nor_hide_others(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    same = timezone.now() - timedelta(hours=1)
    expected = [rows.letter(stripe, f"evt_{n}", buried_at=same).job.key.key for n in range(7)]
    monkeypatch.setattr("reliability.console.paging.conf", lambda: _SmallPages)
    seen, address = [], "/dead-letters/"
    for n in range(4):
        answer = operator.get(address)
        seen += _keys(answer)
        rows.letter(stripe, f"evt_new{n}")
        after = re.search(r'href="(\?[^"]*after=[^"]*)" rel="next"', answer.content.decode())
        if not after:
            break
        address = "/dead-letters/" + unescape(after[1])
    assert seen == expected[::-1]


@pytest.mark.parametrize("address", ["/jobs/", "/deliveries/"])
def test_every_list_is_read_to_its_end_page_by_page(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    stripe = rows.source(acme)
    expected = [rows.letter(stripe, f"evt_{n}").job.key.key for n in range(5)]
    monkeypatch.setattr("reliability.console.paging.conf", lambda: _SmallPages)
    seen: list[str] = []
    query = ""
    for _ in range(3):
        answer = operator.get(address + query)
        seen += _keys(answer)
        after = re.search(r'href="(\?[^"]*after=[^"]*)" rel="next"', answer.content.decode())
        query = unescape(after[1]) if after else ""
    assert seen == expected[::-1]
    assert not query


class _SmallPages:
    page_size = 2


@pytest.mark.parametrize("address", [*LISTS, "/", "/alerts/"])
def test_a_page_asks_the_database_as_often_for_many_rows_as_for_few(
    acme: Tenant, operator: Client, address: str
) -> None:
    stripe = rows.source(acme)

    rows.letter(stripe)
    operator.get(address)  # the first use of a session writes it down
    few = _count(operator, address)
    for _ in range(12):
        rows.letter(stripe)
    assert _count(operator, address) == few <= 30


def _count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_a_letters_page_asks_the_database_a_fixed_number_of_times(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    address = f"/dead-letters/{letter.public_id}/"
    operator.get(address)  # the first use of a session writes it down
    few = _count(operator, address)
    for _ in range(12):
        rows.receipt(letter.job.key, "duplicate")
    assert _count(operator, address) == few


def test_a_hot_list_counts_no_further_than_its_limit(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    for _ in range(4):
        rows.letter(stripe)

    class Three:
        count_max = 3

    monkeypatch.setattr("reliability.console.figures.conf", lambda: Three)
    monkeypatch.setattr("reliability.console.risk.conf", lambda: Three)
    assert "3+ letters open" in operator.get("/dead-letters/").content.decode()


def test_what_a_set_counted_up_to_the_limit_is_worth_is_told_as_the_least(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    for _ in range(4):
        rows.letter(stripe, amount_minor=100, currency="EUR", exponent=2)

    class Two:
        count_max = 2

    monkeypatch.setattr("reliability.console.risk.conf", lambda: Two)
    assert "at least €3.00 at risk" in operator.get("/dead-letters/").content.decode()


def test_money_at_risk_is_told_per_currency_with_refunds_apart(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    for minor, currency, exponent in (
        (8_380_600, "EUR", 2), (1, "EUR", 2), (-120_490, "EUR", 2), (231_000, "GBP", 2),
        (500, "JPY", 0),
    ):  # fmt: skip
        rows.letter(stripe, amount_minor=minor, currency=currency, exponent=exponent)
    shown = operator.get("/dead-letters/").content.decode()
    assert (
        "5 letters open: €83\u202f806.01, £2\u202f310.00 and 500\u00a0JPY at risk, "
        "refunds of €1\u202f204.90 apart." in shown
    )


def test_an_empty_list_and_a_list_without_a_match_say_different_things(
    operator: Client,
) -> None:
    assert b"No dead letters." in operator.get("/dead-letters/").content
    assert b"No letter matches." in operator.get("/dead-letters/?rounds=2").content


def _number_links(shown: str) -> list[tuple[str, int]]:
    found = re.findall(
        r'<a[^>]*href="(/[^"]*)"[^>]*>(?:<strong>)?([\d\u202f]+)(?: open)?<', shown
    )
    return [(unescape(href), int(text.replace("\u202f", ""))) for href, text in found]


def test_every_linked_number_equals_the_rows_behind_it(acme: Tenant, operator: Client) -> None:
    stripe, github = rows.source(acme), rows.source(acme, "github")
    for _ in range(3):
        rows.letter(stripe)
    rows.letter(github, status="requeued")
    now = timezone.now()
    for state in ("done", "done", "ready", "discarded"):
        claimed = rows.key(github, at=now - timedelta(minutes=5))
        rows.job(claimed, state)
        rows.receipt(claimed, "duplicate", at=now - timedelta(minutes=4))
    shown = operator.get("/").content.decode()
    links = _number_links(shown)
    assert len(links) >= 12
    for href, number in links:
        behind = operator.get(href).content.decode()
        table = behind.partition("<tbody>")[2].partition("</tbody>")[0]
        assert table.count("<tr") == number, (href, number)
    assert DeadLetter.objects.open().count() == 3
