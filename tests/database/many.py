"""Dead letters by the hundred thousand, made by the database itself."""

from datetime import datetime

from django.utils import timezone

from reliability.models import Source
from tests.database import world

STATEMENT = """
WITH asked AS (
    SELECT %s::bigint AS tenant, %s::bigint AS source, %s::timestamptz AS at, %s::text AS kind,
           %s::text AS queue, %s::bigint AS amount
),
keys AS (
    INSERT INTO reliability_processedkey
        (tenant_id, source_id, key, kind, downstream_key, amount_minor, currency, exponent,
         body_sha256, claimed_at)
    SELECT tenant, source, kind || '-' || n, kind, 'd-' || kind || '-' || n, amount,
           CASE WHEN amount IS NOT NULL THEN 'EUR' END, CASE WHEN amount IS NOT NULL THEN 2 END,
           sha256('x'), at
    FROM asked, generate_series(1, %s) n
    RETURNING id, tenant_id, source_id, kind, claimed_at
),
bodies AS (
    INSERT INTO reliability_body (tenant_id, key_id, raw, headers, sha256, created_at)
    SELECT tenant_id, id, '{}', '{}', sha256('{}'), claimed_at FROM keys
),
jobs AS (
    INSERT INTO reliability_job
        (tenant_id, source_id, key_id, kind, queue, state, run_at, created_at, ended_at, starts)
    SELECT tenant_id, source_id, id, keys.kind, queue, 'dead', claimed_at, claimed_at, at, 1
    FROM keys, asked ORDER BY keys.id
    RETURNING id, tenant_id, source_id, kind
)
INSERT INTO reliability_deadletter
    (tenant_id, source_id, job_id, round, kind, outcome, reason, error_type, message, fingerprint,
     amount_minor, currency, exponent, buried_at)
SELECT tenant_id, source_id, jobs.id, 1, jobs.kind, 'failed', '5 of 5 attempts failed',
       'LedgerDown', 'no answer', 'LedgerDown: no answer', amount,
       CASE WHEN amount IS NOT NULL THEN 'EUR' END, CASE WHEN amount IS NOT NULL THEN 2 END, at
FROM jobs, asked
"""


def dead_letters(
    source: Source,
    number: int,
    *,
    kind: str = "book",
    queue: str = "outside",
    amount: int | None = None,
    at: datetime | None = None,
) -> None:
    """Bury ``number`` letters of one kind, each with its key and job, in one statement."""
    at = at or timezone.now()
    world.query(STATEMENT, source.tenant_id, source.pk, at, kind, queue, amount, number)
