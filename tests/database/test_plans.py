"""Each statement of sql/ is planned over the index it was written for, on tables with rows."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import resources
from typing import Any

import pytest
from django.db import connection
from psycopg.types.json import Jsonb

from reliability import sql
from reliability.models import Report
from tests.database import world
from tests.database.month import NOW, a_month_of

DAY = timedelta(days=1)
JOB = {"reliability_job_pkey"}
# One column or three: both find one key, and the planner takes what is smaller.
CLAIMED = {"one_claim_per_key", "key_anywhere"}
OPERATION = {"one_claim_per_operation", "operation_anywhere"}

PLANS: dict[str, set[str]] = {
    "bury_job": JOB,
    "bury_unconfirmed": JOB | {"jobs_to_confirm", "jobs_held"},
    "carry_discrepancies": {"verdicts_of_a_report"},
    "claim_events": CLAIMED,
    "claim_job_alone": {"jobs_to_start_alone"},
    "claim_job_inline": {"reliability_job_public_id_key"},
    "claim_jobs": {"jobs_to_start"},
    "close_discrepancies": {"verdicts_of_a_report"},
    "compare_day": {"operations_of_a_day"},
    "compare_groups": {"operations_of_a_batch"},
    "confirm_effect": {"one_mark_per_effect"},
    "count_refusals": {"one_counter_per_reason_and_hour"},
    "count_stretch": {"reliability_processedkey_pkey"},
    "defer_job": JOB,
    "due_queues": {"jobs_waiting", "jobs_to_confirm"},
    "expire_jobs": {"jobs_that_expire"},
    "extend_lease": JOB,
    "find_subject": {"reliability_body_pkey"},
    "finish_jobs": JOB,
    "finish_late": JOB,
    "load_events": JOB,
    "mark_effect": JOB,
    "mark_intent": JOB,
    "number_repeats": {"one_line_per_identity", "lines_to_compare"},
    "purge_done": {"attempts_by_age"},
    "reopen_failed_recoveries": OPERATION,
    "rescue_job": JOB,
    "revision_changes": {"lines_to_compare", "one_line_per_identity"},
    "return_job": JOB,
    "settle_discrepancies": OPERATION,
    "version_changes": {"verdicts_of_a_report"},
    "withdraw_effect": JOB,
}
"""Statement to the index that makes it fast; one of several where they are equally good."""
WITHOUT_INDEX = {
    "apply_ignore_rules", "backstop", "find_own_source", "letters_at_risk", "next_report_id", "now",
}  # fmt: skip
"""Statements that read no table of ours, or a handful of rows."""

ELSEWHERE = {
    "digest_members", "freeze_members", "requeue_members", "resolve_members", "settle_members",
}  # fmt: skip
"""Statements of redrives: planned in test_redrive_plans.py, on sets of their own."""


def samples(report: Report) -> dict[str, Any]:
    """Return a value for every parameter that any statement takes, of the type it takes."""
    event = {"n": 1, "tenant_id": report.tenant_id, "source_id": report.source_id, "key": "evt_new", "kind": "stripe.charge.succeeded", "queue": "outside",
             "operation_class": "charge", "reference": "ch_new"}  # fmt: skip
    charges = {
        "operation_class": "charge",
        "sign": 1,
        "grace": "2 hours",
        "tolerance_minor": 0,
    }
    return {
        "after": DAY, "alone_max": 10_000, "as_of": NOW, "before": NOW - 29 * DAY, "attempt": "failed", "bodies": [b"{}"],
        "carried": NOW - DAY, "count": 1, "day": report.day, "deadline": DAY, "deliveries": Jsonb([]), "ends": NOW,
        "error_type": "", "events": Jsonb([event]), "expired_only": False,
        "families": Jsonb({"missing": "missing"}), "fingerprint": "", "first": 1, "hour": NOW, "id": 1,
        "ids": [1, 2, 3], "key": "k", "last": 10, "last_at": NOW, "needles": [b"x"], "last_peer": None, "last_sha256": b"",
        "last_size_bytes": 1, "lease": DAY, "limit": 100, "limits": Jsonb({}), "message": "", "name": "pay", "now": NOW,
        "new_id": report.pk, "number": 0, "old_id": report.pk, "outcome": "failed",
        "public_id": "00000000-0000-0000-0000-000000000000", "queue": "outside", "reason": "",
        "released": False,
        "report_id": report.pk, "result": None, "results": [None, None, None],
        "round": 1,
        "scope": json.dumps([charges]), "source_id": report.source_id, "started": NOW,
        "since": DAY, "slug": "own:pay", "starts": NOW - DAY, "statement_id": report.statement_id, "tenant": "", "tenant_id": report.tenant_id,
        "token": 1, "tokens": [1, 2, 3], "traceback": "", "windows": Jsonb({}), "without": [],
        "withheld": False, "worker": "here", "zone": "Europe/London",
    }  # fmt: skip


def indexes_in(plan: Any) -> Iterator[str]:
    """Yield the name of every index a plan reads or asks whether a row is new."""
    match plan:
        case dict():
            yield from [plan["Index Name"]] if "Index Name" in plan else []
            yield from plan.get("Conflict Arbiter Indexes", [])
            for value in plan.values():
                yield from indexes_in(value)
        case list():
            for value in plan:
                yield from indexes_in(value)
        case _:
            return


def planned(name: str, values: dict[str, Any]) -> set[str]:
    text = sql.statement(name)
    given = {param: values[param] for param in re.findall(r"%\((\w+)\)s", text)}
    if name == "finish_jobs":
        given["started"] = [NOW, NOW, NOW]
    with connection.connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), given)
        return set(indexes_in(cursor.fetchone()[0]))


def test_every_statement_names_the_index_it_needs() -> None:
    files = {
        path.name.removesuffix(".sql")
        for path in resources.files(sql).iterdir()
        if path.name.endswith(".sql")
    }
    assert files == set(PLANS) | WITHOUT_INDEX | ELSEWHERE


@pytest.mark.django_db
def test_every_statement_uses_its_index() -> None:
    _, report = a_month_of(world.source())
    values = samples(report)
    used = {name: planned(name, values) for name in PLANS}
    astray = {name: found for name, found in used.items() if not found & PLANS[name]}
    assert astray == {}
