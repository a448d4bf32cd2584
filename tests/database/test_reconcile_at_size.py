"""A day on which nearly everything is missing is compared as fast as one on which little is."""

from __future__ import annotations

import time

import pytest
import time_machine

from reliability.models import Discrepancy
from tests.database.days import MORNING_AFTER, Row, a_source, report

pytestmark = pytest.mark.django_db

MISSING = 3_000
SECONDS_MAX = 20
"""Joined row by row, the first report alone takes longer than the test's own time limit."""


def test_thousands_of_missing_events_are_carried_in_seconds_and_again_in_a_revision() -> None:
    started = time.perf_counter()
    with time_machine.travel(MORNING_AFTER, tick=False):
        source = a_source()
        rows = [Row(f"ch_{number}") for number in range(MISSING)]
        report(source, *rows)
        again = report(source, *rows[1:], Row("ch_0", "11.00"))
    assert again.counts == {"missing": MISSING}
    assert Discrepancy.objects.open().count() == MISSING
    assert time.perf_counter() - started < SECONDS_MAX
