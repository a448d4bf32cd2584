"""A statement of sql/ is planned once a connection, not at each call, which costs more than it."""

from dataclasses import replace

import pytest
from django.db import connection, transaction

from reliability import sql
from reliability.claim.accept import FEW
from reliability.claim.enqueue import enqueue, enqueue_many
from reliability.conf import conf
from tests.database import world

PLANNED = """
SELECT generic_plans, custom_plans FROM pg_prepared_statements
WHERE statement LIKE '-- Claim events and record%'
"""


def claims_planned() -> list[tuple[int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(PLANNED)
        return list(cursor.fetchall())


def enqueued(times: int) -> None:
    acme = world.tenant()
    with world.local("pay", lambda _: None):
        for n in range(times):
            enqueue("pay", key=f"k-{n}", tenant=acme)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Close the connection, and stop the clock that tells how old a plan is."""
    connection.close()
    now = [1_000.0]
    monkeypatch.setattr(sql, "monotonic", lambda: now[0])
    return now


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_a_statement_is_planned_once_for_all_calls() -> None:
    enqueued(4)
    assert claims_planned() == [(4, 0)]


@pytest.mark.django_db(transaction=True)
def test_a_plan_made_for_small_tables_is_made_anew_soon(clock: list[float]) -> None:
    enqueued(2)
    clock[0] += sql.PLANNED_FOR_SECONDS
    enqueued(1)
    assert sorted(claims_planned()) == [(1, 0), (2, 0)]


@pytest.mark.django_db(transaction=True)
def test_few_plans_are_kept(clock: list[float]) -> None:
    for _ in range(sql.PLANS_KEPT):
        clock[0] += sql.PLANNED_FOR_SECONDS
        enqueued(1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone()[0] <= sql.PLANS_KEPT + 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_a_rollback_to_a_savepoint_forgets_no_plan() -> None:
    with transaction.atomic():
        enqueued(2)
        point = transaction.savepoint()
        transaction.savepoint_rollback(point)
        assert claims_planned() == [(2, 0)]


READ_WHOLE = """
SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'reliability_processedkey'
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_no_foreign_key_is_checked_by_a_plan_made_while_its_table_was_small() -> None:
    acme = world.tenant()
    enqueued(3)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    enqueued(4)
    with (
        transaction.atomic(),
        connection.cursor() as cursor,
        world.local("pay", lambda _: None),
    ):
        enqueue_many("pay", [(f"many-{n}", None) for n in range(1_000)], tenant=acme)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(READ_WHOLE)
        [[rows]] = cursor.fetchall()
        # The claim itself reads the seven of before for each of its thousand; a check all of them.
        assert rows < 10 * 1_000


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_a_statement_is_large_only_beyond_so_many_events() -> None:
    acme = world.tenant()
    with world.local("pay", lambda _: None):
        enqueue_many("pay", [(f"k-{n}", None) for n in range(FEW)], tenant=acme)
    assert claims_planned() == [(1, 0)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_what_a_large_statement_is_planned_for_is_not_what_its_foreign_keys_are() -> None:
    acme = world.tenant()
    with (
        transaction.atomic(),
        connection.cursor() as cursor,
        world.local("pay", lambda _: None),
    ):
        enqueue_many("pay", [(f"k-{n}", None) for n in range(FEW + 1)], tenant=acme)
        assert claims_planned() == [(0, 1)]
        cursor.execute("SHOW plan_cache_mode")
        assert cursor.fetchone() == ("force_generic_plan",)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_behind_a_pooler_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    pooled = replace(conf(), prepare_statements=False)
    monkeypatch.setattr(sql, "conf", lambda: pooled)
    enqueued(4)
    assert claims_planned() == []
