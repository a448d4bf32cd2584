-- The rows an enqueue leaves behind, by one bare statement: a key, its body, its receipt, its job.
-- Nothing is asked before, nothing is answered: what the tables and their indexes cost by themselves.
--
--   tenant_id, source_id, keys (text[])

WITH fresh AS (
    INSERT INTO reliability_processedkey
        (tenant_id, source_id, key, kind, downstream_key, body_sha256, claimed_at)
    SELECT %(tenant_id)s, %(source_id)s, key, 'bench.local', key, sha256('{}'), now()
    FROM unnest(%(keys)s::text[]) key
    RETURNING id
),
body AS (
    INSERT INTO reliability_body (tenant_id, key_id, raw, headers, sha256, created_at)
    SELECT %(tenant_id)s, id, '{}', '{}', sha256('{}'), now() FROM fresh
),
receipt AS (
    INSERT INTO reliability_receipt (tenant_id, source_id, key_id, verdict, at)
    SELECT %(tenant_id)s, %(source_id)s, id, 'accepted', now() FROM fresh
)
INSERT INTO reliability_job (tenant_id, source_id, key_id, kind, queue, run_at, created_at)
SELECT %(tenant_id)s, %(source_id)s, id, 'bench.local', 'local', now(), now() FROM fresh
