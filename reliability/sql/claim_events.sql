-- Claim events: each new key once, with its operation, its job, its body and, where the event is
-- dead at the door, its letter.
--
--   tenant_id, source_id   whose keys these are
--   now                    the door's clock
--   events                 jsonb array of objects, see asked below; n counts from 1
--   bodies                 bytea[]; bodies[n] belongs to the event n
--
-- -> n of every event whose key was new
--
-- Locks: the index entries of new keys and operations until the transaction ends; a concurrent
-- claim of one of them waits. An operation is inserted only for a key that is not yet there; should
-- a concurrent claim of that key win in between, the operation's foreign key fails the whole
-- statement, and asking again finds the key. OFFSET 0 keeps that question a look-up of the whole
-- key: before the first ANALYZE an anti-join may read all keys of the source.

WITH asked AS MATERIALIZED (
    SELECT nextval('reliability_processedkey_id_seq') AS key_id, event.*, body.raw
    FROM jsonb_to_recordset(%(events)s) AS event(
        n int, key text, kind text, queue text, downstream_key text, asked_by text,
        operation_class text, reference text, amount_minor bigint, currency text,
        exponent smallint, occurred_at timestamptz,
        held text, outcome text, reason text, headers jsonb, replayable boolean,
        unconfirmed boolean)
    JOIN unnest(%(bodies)s::bytea[]) WITH ORDINALITY AS body(raw, n) USING (n)
    ORDER BY event.key
),
fresh_operation AS (
    INSERT INTO reliability_operation
        (tenant_id, source_id, operation_class, reference, key_id,
         amount_minor, currency, exponent, occurred_at)
    SELECT %(tenant_id)s, %(source_id)s, operation_class, reference, key_id,
           amount_minor, currency, exponent, coalesce(occurred_at, %(now)s)
    FROM asked
    WHERE operation_class IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM reliability_processedkey known
          WHERE known.tenant_id = %(tenant_id)s AND known.source_id = %(source_id)s
            AND known.key = asked.key
          OFFSET 0)
    ON CONFLICT (tenant_id, source_id, operation_class, reference) DO NOTHING
    RETURNING key_id
),
fresh_key AS (
    INSERT INTO reliability_processedkey
        (id, tenant_id, source_id, key, kind, downstream_key, operation_class,
         operation_reference, amount_minor, currency, exponent, absorbed, occurred_at,
         asked_by, body_sha256, claimed_at, unconfirmed)
    SELECT key_id, %(tenant_id)s, %(source_id)s, key, kind, downstream_key, operation_class,
           reference, amount_minor, currency, exponent,
           operation_class IS NOT NULL AND key_id NOT IN (SELECT key_id FROM fresh_operation),
           occurred_at, asked_by, sha256(raw), %(now)s, coalesce(unconfirmed, false)
    FROM asked
    ON CONFLICT (tenant_id, source_id, key) DO NOTHING
    RETURNING id, absorbed
),
fresh_job AS (
    INSERT INTO reliability_job
        (tenant_id, source_id, key_id, kind, queue, state, held, run_at, created_at, ended_at)
    SELECT %(tenant_id)s, %(source_id)s, key_id, kind, queue,
           CASE WHEN outcome IS NULL THEN 'ready' ELSE 'dead' END,
           held, least(%(now)s, clock_timestamp()), %(now)s,
           CASE WHEN outcome IS NULL THEN NULL ELSE %(now)s END
    FROM asked JOIN fresh_key ON fresh_key.id = asked.key_id
    WHERE NOT absorbed
    RETURNING id, key_id
),
fresh_letter AS (
    INSERT INTO reliability_deadletter
        (tenant_id, source_id, job_id, round, kind, outcome, reason, fingerprint,
         amount_minor, currency, exponent, buried_at)
    SELECT %(tenant_id)s, %(source_id)s, fresh_job.id, 1, kind, outcome, reason,
           outcome || ': ' || kind, amount_minor, currency, exponent, %(now)s
    FROM asked JOIN fresh_job USING (key_id)
    WHERE outcome IS NOT NULL
),
fresh_body AS (
    INSERT INTO reliability_body (tenant_id, key_id, raw, headers, sha256, replayable, created_at)
    SELECT %(tenant_id)s, key_id, raw, headers, sha256(raw), replayable, %(now)s
    FROM asked JOIN fresh_key ON fresh_key.id = asked.key_id
)
SELECT asked.n FROM asked JOIN fresh_key ON fresh_key.id = asked.key_id
