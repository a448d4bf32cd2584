"""A day's statement asked of Stripe's own list of balance transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from django.core.management import CommandError, call_command

from reliability.claim.door import forget
from reliability.models import ApiCredential, Artefact, Run, Source, Statement, StatementLine
from reliability.reconcile.collect import Collected, collect
from tests.database.days import DAY, MORNING_AFTER, a_source
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

# DAY in Amsterdam begins and ends at 22:00 UTC.
BEGINS = datetime(2026, 10, 13, 22, tzinfo=UTC)
ENDS = datetime(2026, 10, 14, 22, tzinfo=UTC)


def transaction(number: int, at: datetime) -> dict[str, Any]:
    return {
        "id": f"txn_{number}", "object": "balance_transaction", "amount": 1000, "fee": 30,
        "net": 970, "currency": "eur", "created": int(at.timestamp()), "status": "available",
        "available_on": int(at.timestamp()), "type": "charge", "reporting_category": "charge",
        "source": {"id": f"ch_{number}", "object": "charge", "amount": 1000, "currency": "eur"},
    }  # fmt: skip


class StripeApi:
    """Balance transactions newest first, three a page; the window asked for is obeyed."""

    def __init__(self) -> None:
        self.rows = [
            transaction(0, ENDS),
            transaction(1, ENDS - timedelta(seconds=1)),
            *(transaction(number, ENDS - timedelta(hours=number)) for number in range(2, 9)),
            transaction(9, BEGINS),
            transaction(10, BEGINS - timedelta(seconds=1)),
        ]
        self.status = 200

    def __call__(self, heard: Heard) -> Says:
        if self.status != 200:
            return Says(self.status, b'{"error": {"message": "no"}}')
        query = parse_qs(urlsplit(heard.path).query)
        since, until = int(query["created[gte]"][0]), int(query["created[lt]"][0])
        rows = [row for row in self.rows if since <= row["created"] < until]
        ids = [row["id"] for row in rows]
        start = ids.index(query["starting_after"][0]) + 1 if "starting_after" in query else 0
        page = rows[start : start + 3]
        said = {
            "object": "list", "url": "/v1/balance_transactions", "data": page,
            "has_more": start + 3 < len(rows),
        }  # fmt: skip
        return Says(200, json.dumps(said).encode(), {"Content-Type": "application/json"})


@pytest.fixture
def api() -> StripeApi:
    return StripeApi()


@pytest.fixture
def place(api: StripeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    forget()
    allow_loopback(monkeypatch)
    with serving(api) as place, time_machine.travel(MORNING_AFTER, tick=False):
        yield place


@pytest.fixture
def source(place: Elsewhere) -> Source:
    made = a_source(
        statement_format="stripe-api-json",
        statement_options={},
        options={"api_url": place.url},
    )
    ApiCredential.keep(made, "rk_test_1")
    return made


def fetch(*more: str) -> Any:
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command(
            "reconcile", "--source", "shop", "--day", str(DAY), "--fetch", "--json", *more,
            stdout=out,
        )  # fmt: skip
    return json.loads(out.getvalue()) | {"code": end.value.code}


def test_the_day_s_rows_and_no_others_are_the_statement(
    source: Source, place: Elsewhere
) -> None:
    told = fetch()
    assert (told["completeness"], told["counts"]["missing"]) == ("unproven", 9)
    ids = StatementLine.objects.order_by("position").values_list("provider_id", flat=True)
    assert list(ids) == [f"txn_{number}" for number in range(1, 10)]
    assert len(place.heard) == 4
    asked = parse_qs(urlsplit(place.heard[0].path).query)
    assert asked["created[gte]"] == [str(int((BEGINS - timedelta(minutes=10)).timestamp()))]
    assert asked["created[lt]"] == [str(int((ENDS + timedelta(minutes=10)).timestamp()))]


def test_a_row_that_is_listed_twice_counts_once(source: Source, api: StripeApi) -> None:
    api.rows.insert(6, api.rows[2])
    fetch()
    assert Statement.objects.get().line_count == 9


def test_the_same_answer_again_changes_nothing(source: Source) -> None:
    fetch()
    fetch()
    assert (Artefact.objects.count(), Statement.objects.count()) == (1, 1)


def test_a_provider_that_says_no_leaves_nothing_behind(source: Source, api: StripeApi) -> None:
    api.status = 401
    assert fetch()["refused"] == "Stripe said: no"
    assert Artefact.objects.count() == 0


def test_a_format_that_no_api_lists_is_named(source: Source) -> None:
    Source.objects.update(statement_format="mapped-csv")
    assert "which no API lists; known: stripe-api-json" in fetch()["refused"]


def test_a_day_or_a_folder_has_to_be_named(source: Source) -> None:
    with pytest.raises(CommandError, match="Say which --day"):
        call_command("reconcile", "--source", "shop", "--fetch")


def test_beat_asks_for_each_day_that_is_over_and_has_none(
    source: Source, api: StripeApi
) -> None:
    Source.objects.update(created_at=BEGINS)
    assert collect(Run.Trigger.BEAT) == Collected(fetched=1)
    assert Statement.objects.get().day == DAY
    assert collect(Run.Trigger.BEAT) == Collected()
    Statement.objects.all().delete()
    api.status = 401
    assert collect(Run.Trigger.BEAT) == Collected(failed=1)


def test_beat_waits_until_late_rows_are_listed(source: Source) -> None:
    Source.objects.update(created_at=BEGINS)
    with time_machine.travel(ENDS + timedelta(minutes=119), tick=False):
        assert collect(Run.Trigger.BEAT) == Collected()
