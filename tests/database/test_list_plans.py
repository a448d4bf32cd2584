"""The list of many letters: each page is read off its index, whatever its depth."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import RequestFactory
from django.utils import timezone

from reliability.console.causes import _grouped
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.paging import below
from reliability.console.risk import UNIT
from reliability.models import DeadLetter
from tests.database import many, world
from tests.database.test_plans import indexes_in

pytestmark = pytest.mark.django_db
LETTERS = 20_000
RARE = 3
PAGE = 51


@pytest.fixture
def tenant_id() -> int:
    """Bury many letters of one text, over two weeks, and three of another."""
    now, source = timezone.now(), world.source()
    for n in range(10):
        buried_at = now - timedelta(days=n)
        many.dead_letters(source, LETTERS // 10, kind=f"book-{n}", at=buried_at)
    many.dead_letters(source, RARE, kind="rare", at=now - timedelta(days=9))
    many.dead_letters(source, RARE, kind="gone", at=now - timedelta(days=9))
    world.query(
        "UPDATE reliability_deadletter SET message = 'ledger refused period_locked NL-02',"
        " fingerprint = 'LedgerDown: locked', error_type = 'Locked', outcome = 'unknown',"
        " round = 2, amount_minor = 5, currency = 'CHF', exponent = 2 WHERE kind = 'rare'"
    )
    world.query(
        "UPDATE reliability_deadletter SET status = 'discarded', closed_at = now()"
        " WHERE kind = 'gone'"
    )
    world.query(
        "UPDATE reliability_deadletter SET buried_at = buried_at - id * interval '1 s'"
    )
    # What vacuum does now and then: until it has, the index is a list to be read through.
    world.query("SELECT gin_clean_pending_list('letters_open_by_text')")
    world.query("ANALYZE reliability_deadletter")
    return int(world.tenant().pk)


def listed(tenant_id: int, query: str = "") -> "QuerySet[DeadLetter]":
    """Return the letters of a list asked for by ``query``, in the order of its page."""
    request: Any = RequestFactory().get("/dead-letters/")
    request.tenant, request.now = world.tenant(), timezone.now()
    letters = DeadLetter.objects.filter(tenant=tenant_id)
    found: QuerySet[DeadLetter] = DeadLetterFilter(request, letters, query).found()
    return found.order_by("-buried_at", "-pk")


def plan_of(rows: "QuerySet[Any, Any]") -> Any:
    text, given = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        # Whether workers help depends on how busy the machine is.
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", given)
        (found,) = cursor.fetchone()
    return json.loads(found) if isinstance(found, str) else found


def parts(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield every step of a plan."""
    match plan:
        case dict():
            yield from [plan] if "Node Type" in plan else []
            for value in plan.values():
                yield from parts(value)
        case list():
            for value in plan:
                yield from parts(value)
        case _:
            return


def steps(plan: Any) -> set[str]:
    return {part["Node Type"] for part in parts(plan)}


def test_the_first_page_is_read_off_the_index_of_open_letters(tenant_id: int) -> None:
    plan = plan_of(listed(tenant_id)[:PAGE])
    assert set(indexes_in(plan)) == {"letters_open_newest"}
    assert not {"Sort", "Seq Scan"} & steps(plan)


def test_a_page_far_down_costs_what_the_first_one_costs(tenant_id: int) -> None:
    deep = listed(tenant_id)[LETTERS - 100]
    plan = plan_of(below(listed(tenant_id), "buried_at", deep.buried_at, deep.pk)[:PAGE])
    assert set(indexes_in(plan)) == {"letters_open_newest"}
    assert not {"Sort", "Incremental Sort", "Seq Scan"} & steps(plan)
    (read,) = [part for part in parts(plan) if part.get("Index Name")]
    assert read["Actual Rows"] == PAGE
    assert read["Rows Removed by Filter"] == 1


def test_a_rare_text_is_found_by_its_trigrams(tenant_id: int) -> None:
    rows = listed(tenant_id, "text=Period_Locked")
    assert set(indexes_in(plan_of(rows[:PAGE]))) == {"letters_open_by_text"}
    assert rows.count() == RARE


def test_a_cause_is_found_by_its_own_index(tenant_id: int) -> None:
    rows = listed(tenant_id, "cause=LedgerDown: locked")
    assert set(indexes_in(plan_of(rows[:PAGE]))) == {"letters_open_by_cause"}
    assert rows.count() == RARE


def test_the_money_of_a_cause_is_summed_off_its_index(tenant_id: int) -> None:
    rows = listed(tenant_id, "cause=LedgerDown: locked").order_by().values(*UNIT)
    plan = plan_of(rows[:PAGE])
    assert set(indexes_in(plan)) == {"letters_open_by_cause"}
    assert "Index Only Scan" in steps(plan)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("kind=rare", "letters_open_of_a_kind"),
        ("error=Locked", "letters_open_of_an_error"),
        ("outcome=unknown", "letters_open_by_outcome"),
        ("rounds=2", "letters_open_again"),
        ("currency=CHF&amount_min=1", "letters_open_by_amount"),
        ("status=discarded", "letters_closed_newest"),
    ],
)
def test_what_is_rare_is_found_without_reading_the_rest(
    tenant_id: int, query: str, index: str
) -> None:
    rows = listed(tenant_id, query)
    assert set(indexes_in(plan_of(rows[:PAGE]))) == {index}
    assert rows.count() == RARE


def test_a_kind_with_many_letters_is_read_in_the_order_of_its_page(tenant_id: int) -> None:
    plan = plan_of(listed(tenant_id, "kind=book-1")[:PAGE])
    assert set(indexes_in(plan)) == {"letters_open_of_a_kind"}
    assert not {"Sort", "Seq Scan"} & steps(plan)


def test_causes_are_grouped_without_sorting_every_letter(tenant_id: int) -> None:
    plan = plan_of(_grouped(listed(tenant_id), timezone.now() - timedelta(days=7))[:100])
    (grouped,) = [part for part in parts(plan) if part["Node Type"] == "Aggregate"]
    assert grouped["Strategy"] == "Hashed"
    assert grouped["Plan Rows"] < LETTERS // 10


def test_the_text_index_holds_open_letters_alone(tenant_id: int) -> None:
    ((size,),) = world.query("SELECT pg_relation_size('letters_open_by_text')")
    ((kept,),) = world.query(
        "SELECT pg_get_expr(indpred, indrelid) FROM pg_index"
        " WHERE indexrelid = 'letters_open_by_text'::regclass"
    )
    assert size > 0
    assert kept == "(status = 'open'::text)"
