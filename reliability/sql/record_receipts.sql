-- Record what one delivery (or one call of enqueue) did to each key, and tell each key's fate.
--
--   tenant_id, source_id, now   as in claim_events
--   events, bodies              as in claim_events, each event with "fresh" added
--   delivery                    jsonb object of the delivery's facts, or NULL for enqueue
--
-- -> per event: n, verdict, the job's public id, state and result, when it was done (also after its
--    job was purged), and for an absorbed key the key that claimed its operation
--
-- Runs after claim_events in the same transaction. Bytes that are new to a known key are kept
-- beside its first ones. The look-ups are lateral, with their whole key: before the first ANALYZE
-- a join may read all keys of a source, and a prepared plan would keep doing so.

WITH asked AS MATERIALIZED (
    SELECT event.*, body.raw
    FROM jsonb_to_recordset(%(events)s) AS event(
        n int, key text, kind text, fresh boolean, operation_class text, reference text,
        amount_minor bigint, currency text, headers jsonb, replayable boolean)
    JOIN unnest(%(bodies)s::bytea[]) WITH ORDINALITY AS body(raw, n) USING (n)
),
judged AS MATERIALIZED (
    SELECT asked.*, known.id AS key_id,
           CASE WHEN fresh AND known.absorbed THEN 'absorbed'
                WHEN fresh THEN 'accepted'
                WHEN (known.kind, known.operation_class, known.operation_reference,
                      known.amount_minor, known.currency)
                     IS DISTINCT FROM
                     (asked.kind, asked.operation_class, asked.reference,
                      asked.amount_minor, asked.currency) THEN 'conflict'
                ELSE 'duplicate' END AS verdict,
           known.operation_class AS known_class, known.operation_reference AS known_reference,
           known.done_at AS purged_done_at, known.erased_at
    FROM asked
    CROSS JOIN LATERAL (
        SELECT * FROM reliability_processedkey claimed
        WHERE claimed.tenant_id = %(tenant_id)s AND claimed.source_id = %(source_id)s
          AND claimed.key = asked.key
        LIMIT 1) known
),
delivery AS (
    INSERT INTO reliability_delivery
        (tenant_id, source_id, received_at, peer, size_bytes, sha256, answer, scheme,
         secret_id, verifier_version, signed_at)
    SELECT %(tenant_id)s, %(source_id)s, %(now)s, peer, size_bytes, decode(sha256, 'hex'),
           answer, scheme, secret_id, verifier_version, signed_at
    FROM jsonb_to_record(%(delivery)s) AS fact(
        peer inet, size_bytes int, sha256 text, answer smallint, scheme text, secret_id bigint,
        verifier_version smallint, signed_at timestamptz)
    WHERE %(delivery)s::jsonb IS NOT NULL
    RETURNING id
),
receipt AS (
    INSERT INTO reliability_receipt
        (tenant_id, key_id, delivery_id, verdict, suspected_replay, differs, at)
    SELECT %(tenant_id)s, key_id, (SELECT id FROM delivery), verdict,
           fresh AND replayable AND EXISTS (
               SELECT FROM reliability_body twin
               JOIN reliability_processedkey other ON other.id = twin.key_id
               WHERE twin.replayable AND twin.sha256 = sha256(raw)
                 AND other.source_id = %(source_id)s AND other.id <> judged.key_id),
           CASE WHEN verdict = 'conflict' THEN jsonb_strip_nulls(jsonb_build_object(
               'kind', kind, 'operation_class', operation_class, 'reference', reference,
               'amount_minor', amount_minor, 'currency', currency)) END,
           %(now)s
    FROM judged
),
other_bytes AS (
    INSERT INTO reliability_body
        (tenant_id, key_id, raw, headers, sha256, first, replayable, created_at)
    SELECT %(tenant_id)s, key_id, raw, headers, sha256(raw), false, replayable, %(now)s
    FROM judged
    WHERE NOT fresh AND erased_at IS NULL AND NOT EXISTS (
        SELECT FROM reliability_body same
        WHERE same.key_id = judged.key_id AND same.sha256 = sha256(judged.raw))
)
SELECT judged.n, judged.verdict, job.public_id AS job_id, job.result,
       CASE WHEN purged_done_at IS NULL THEN job.state ELSE 'done' END AS state,
       coalesce(purged_done_at, CASE job.state WHEN 'done' THEN job.ended_at END) AS done_at,
       claimant.key AS claimant
FROM judged
LEFT JOIN reliability_job job ON job.key_id = judged.key_id
LEFT JOIN LATERAL (
    SELECT key_id FROM reliability_operation operation
    WHERE operation.tenant_id = %(tenant_id)s AND operation.source_id = %(source_id)s
      AND operation.operation_class = judged.known_class
      AND operation.reference = judged.known_reference
    LIMIT 1) claimed ON true
LEFT JOIN reliability_processedkey claimant
       ON claimant.id = claimed.key_id AND claimant.id <> judged.key_id
ORDER BY judged.n
