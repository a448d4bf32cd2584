"""Imports and compares of one source take turns; webhooks do not wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import connection

from reliability.errors import TryAgain
from reliability.models import Report, Source
from reliability.reconcile import plan
from reliability.reconcile.day import compare_day
from reliability.reconcile.planner import Planned
from tests.database.days import DAY, MORNING_AFTER, Row, a_file, a_source, give, operation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source() -> Iterator[Source]:
    with time_machine.travel(MORNING_AFTER, tick=False):
        made = a_source()
        give(made, a_file(Row("ch_1")))
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
        yield made
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


@pytest.fixture
def somebody_compares(source: Source) -> Iterator[psycopg.Connection[Any]]:
    """Hold the source as a running compare does, on a connection of its own."""
    settings = connection.get_connection_params()
    known = {name: settings[name] for name in ("dbname", "user", "password", "host", "port")}
    with psycopg.connect(**known) as other:
        other.execute(
            "SELECT id FROM reliability_source WHERE id = %s FOR NO KEY UPDATE", [source.pk]
        )
        yield other


def test_a_second_compare_of_a_source_is_told_to_ask_again(
    source: Source, somebody_compares: object
) -> None:
    with pytest.raises(TryAgain, match="another compare of this source is running"):
        compare_day(source, DAY, by="mara")
    with pytest.raises(TryAgain):
        give(source, a_file(Row("ch_2")))
    assert Report.objects.count() == 0


def test_the_planner_passes_over_a_source_that_is_being_compared(
    source: Source, somebody_compares: object
) -> None:
    Source.objects.exclude(pk=source.pk).update(statement_kinds=[])
    planned = plan("beat")
    assert (planned.compared, planned.failed > 0) == (0, True)
    assert isinstance(planned, Planned)


def test_events_are_taken_in_while_a_compare_runs(
    source: Source, somebody_compares: object
) -> None:
    assert operation(source, "ch_1").state == "done"
