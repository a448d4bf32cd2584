"""A worker keeps its connection from bell to bell, and takes another where that one is gone."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from reliability import dispatch
from reliability.claim.enqueue import enqueue
from reliability.models import Job
from reliability.outbound.senders import TEST_TYPE
from tests.database import world
from tests.database.live import working

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 40
DRAINING = """
SELECT pid, backend_start FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '-- Lease%'
"""


def rings_still(log: Path) -> bool:
    said = log.read_text()
    return said.count(" received") > said.count(" succeeded in")


def draining() -> list[tuple[int, object]]:
    """Return the connections whose last statement asked for a job, once its drain is over."""
    until = time.monotonic() + 5
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(DRAINING)
            if found := cursor.fetchall():
                return list(found)
            time.sleep(0.1)
    return []


@pytest.fixture
def done(tmp_path: Path) -> Iterator[Callable[[str], list[tuple[int, object]]]]:
    """Start a worker; what is yielded has it do a job and tells which connections it drained by."""

    def do(key: str) -> list[tuple[int, object]]:
        enqueue(TEST_TYPE, key=key, tenant=world.tenant())
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and Job.objects.exclude(state="done").exists():
            dispatch.ring("local")
            time.sleep(0.2)
        assert not Job.objects.exclude(state="done").exists(), log.read_text()
        return draining()

    log = tmp_path / "worker.log"
    with working(log):
        yield do


def test_a_worker_keeps_its_connection_from_bell_to_bell(
    done: Callable[[str], list[tuple[int, object]]],
) -> None:
    first = done("first")
    assert len(first) == 1
    assert done("second") == first


def test_a_worker_whose_connection_is_gone_does_the_next_bell_by_another(
    done: Callable[[str], list[tuple[int, object]]], tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    [(gone, _)] = done("first")
    until = time.monotonic() + SECONDS
    while rings_still(log) and time.monotonic() < until:
        time.sleep(0.1)  # what is being worked may lose its connection loudly
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [gone])
        assert cursor.fetchone() == (True,)
    assert len(done("second")) == 1
    assert "Traceback" not in log.read_text()
