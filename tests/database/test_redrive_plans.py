"""Each statement of a redrive goes from its members to their jobs and letters by index."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from reliability import sql
from reliability.models import DeadLetter, Redrive
from reliability.work.dead_letters import Act
from reliability.work.redrive import freeze
from reliability.work.redrive.freeze import CHOSEN
from tests.database import many, world
from tests.database.test_plans import ELSEWHERE, indexes_in

pytestmark = pytest.mark.django_db

MEMBERS, JOBS = "members_of_a_redrive", "reliability_job_pkey"
PLANS = {
    "digest_members": {MEMBERS},
    "freeze_members": {"reliability_deadletter_pkey", JOBS},
    "requeue_members": {MEMBERS, JOBS, "reliability_deadletter_pkey"},
    "resolve_members": {MEMBERS, JOBS},
    "settle_members": {MEMBERS, JOBS},
}
SETS, LETTERS = 20, 100


@pytest.fixture
def redrive() -> Redrive:
    """Return one set of many, so that a plan that reads them all is the dearer one."""
    kinds = [f"book-{n}" for n in range(SETS)]
    for kind in kinds:
        many.dead_letters(world.source(kind), LETTERS, kind=kind)
    world.query("ANALYZE")
    last = [_frozen(kind) for kind in kinds][-1]
    last.members.update(outcome="pending", verdict="already applied")
    world.query("ANALYZE")
    return last


def _frozen(kind: str) -> Redrive:
    letters = DeadLetter.objects.filter(kind=kind)
    act = Act(world.tenant(), "ola")
    return freeze(letters, act, asked=f"kind={kind}", now=timezone.now())


def planned(name: str, redrive: Redrive) -> set[str]:
    now = timezone.now()
    values: dict[str, Any] = {
        "redrive_id": redrive.pk, "limit": 10, "now": now, "asking": ["none"],
        "asked_since": now, "actor": "ola", "reason": "why", "lane": 10,
        "apart": timedelta(seconds=1),
    }  # fmt: skip
    text = sql.statement(name)
    given: Any = {param: values[param] for param in re.findall(r"%\((\w+)\)s", text)}
    if name == "freeze_members":
        chosen = f"SELECT {', '.join(CHOSEN)} FROM reliability_deadletter WHERE id = ANY(%s)"
        text = text.replace("{chosen}", chosen)
        ids = list(redrive.members.values_list("letter_id", flat=True)[:10])
        given = [redrive.pk, redrive.tenant_id, now, ["a"], ["a"], ids]
    with connection.connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), given)
        return set(indexes_in(cursor.fetchone()[0]))


def test_every_statement_of_redrives_is_planned_here() -> None:
    assert set(PLANS) == ELSEWHERE


@pytest.mark.parametrize("name", PLANS)
def test_a_statement_of_redrives_uses_its_indexes(redrive: Redrive, name: str) -> None:
    assert PLANS[name] <= planned(name, redrive)


def test_a_set_is_frozen_without_reading_other_letters_or_jobs(redrive: Redrive) -> None:
    letters = DeadLetter.objects.filter(source=redrive.members.first().letter.source_id)  # type: ignore[union-attr]
    chosen, chosen_by = letters.order_by("pk").values(*CHOSEN)[:1000].query.sql_with_params()
    text = sql.statement("freeze_members").replace("{chosen}", chosen)
    given = [redrive.pk, redrive.tenant_id, timezone.now(), ["a"], ["a"], *chosen_by]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {text}", given)
        ((plan,),) = cursor.fetchall()
    assert JOBS in set(indexes_in(json.loads(plan) if isinstance(plan, str) else plan))
