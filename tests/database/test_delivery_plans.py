"""The list of many deliveries: one source's are read, and counted, off their own index."""

from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import RequestFactory
from django.utils import timezone

from reliability.console.lists.deliveries import DeliveryFilter
from reliability.models import Job, Receipt, Source
from tests.database import world
from tests.database.test_list_plans import plan_of, steps
from tests.database.test_plans import indexes_in

pytestmark = pytest.mark.django_db
EACH, SOURCES, PAGE, COUNTED = 400, 50, 51, 300


@pytest.fixture
def source() -> Source:
    """Let sources take turns, a key, a receipt and a job each; return one of them."""
    source_ids = [world.source(f"source-{n}").pk for n in range(SOURCES)]
    world.query(
        "WITH claimed AS (INSERT INTO reliability_processedkey"
        " (tenant_id, source_id, key, kind, downstream_key, body_sha256, claimed_at)"
        " SELECT %s, (%s::bigint[])[1 + n %% %s], 'evt_' || n, 'k', 'ik_' || n, '', now()"
        " FROM generate_series(1, %s) n RETURNING id, tenant_id, source_id, claimed_at),"
        " received AS (INSERT INTO reliability_receipt"
        " (tenant_id, source_id, key_id, verdict, at)"
        " SELECT tenant_id, source_id, id, 'accepted', claimed_at FROM claimed)"
        " INSERT INTO reliability_job"
        " (tenant_id, source_id, key_id, kind, queue, run_at, created_at)"
        " SELECT tenant_id, source_id, id, 'k', 'local', claimed_at, claimed_at FROM claimed",
        world.tenant().pk, source_ids, SOURCES, EACH * SOURCES,
    )  # fmt: skip
    world.query("ANALYZE reliability_receipt, reliability_job")
    # What is not yet vacuumed is read by bitmap; here is asked whether the index would do alone.
    world.query("SET LOCAL enable_bitmapscan = off")
    return Source.objects.get(slug="source-3")


@pytest.fixture
def receipts(source: Source) -> "QuerySet[Receipt]":
    request: Any = RequestFactory().get("/deliveries/")
    request.tenant, request.now = world.tenant(), timezone.now()
    rows = Receipt.objects.filter(tenant=request.tenant)
    found: QuerySet[Receipt] = DeliveryFilter(request, rows, f"source={source.slug}").found()
    return found


def test_a_page_of_one_source_is_read_off_its_index(receipts: "QuerySet[Receipt]") -> None:
    plan = plan_of(receipts.order_by("-pk")[:PAGE])
    assert set(indexes_in(plan)) == {"receipts_of_a_source"}
    assert not {"Sort", "Seq Scan"} & steps(plan)


def test_one_sources_deliveries_are_counted_without_reading_the_others(
    receipts: "QuerySet[Receipt]",
) -> None:
    assert receipts.count() == EACH
    plan = plan_of(receipts.values("pk")[:COUNTED])
    assert set(indexes_in(plan)) == {"receipts_of_a_source"}
    assert "Index Only Scan" in steps(plan)


def test_one_sources_jobs_are_counted_without_reading_the_others(source: Source) -> None:
    rows = Job.objects.filter(tenant=source.tenant, source=source)
    assert rows.count() == EACH
    plan = plan_of(rows.values("source")[:COUNTED])
    assert set(indexes_in(plan)) == {"jobs_of_a_source"}
    assert "Index Only Scan" in steps(plan)
