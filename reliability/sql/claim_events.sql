-- Claim events and record what came of each: a new key once, with its operation, its job, its body
-- and, where the event is dead at the door, its letter; a known key only gets its receipt.
--
--   now          the door's clock
--   events       jsonb array of objects, see asked below; n counts from 1, d names the delivery
--                that brought it, delivery_id one recorded before
--   bodies       bytea[]; bodies[n] belongs to the event n
--   deliveries   jsonb array of the facts of each delivery, see delivery below; none for enqueue
--
-- -> per event: n, verdict, the job's public id, state and result, when it was done (also after its
--    job was purged), for an absorbed key the key that claimed its operation (NULL where that was
--    claimed beside this one), and the delivery's id. A verdict of NULL: a concurrent claim won this
--    key after we looked. Ask again for that event alone, naming its delivery_id; the key is there
--    to see by then.
--
-- Locks: the index entries of new keys and operations until the transaction ends; a concurrent
-- claim of one of them waits. An operation is inserted only for a key that is not yet there; should
-- a concurrent claim of that key win in between, the operation's foreign key fails the whole
-- statement, and asking again finds the key. Look-ups are lateral, with their whole key: before the
-- first ANALYZE a join may read all keys of a source, and a prepared plan would keep doing so.

WITH asked AS MATERIALIZED (
    SELECT nextval('reliability_processedkey_id_seq') AS new_id, event.*, body.raw,
           known.id AS known_id, known.erased_at,
           known.done_at AS purged_done_at,
           known.operation_class AS known_class, known.operation_reference AS known_reference,
           (known.kind, known.operation_class, known.operation_reference,
            known.amount_minor, known.currency)
           IS DISTINCT FROM
           (event.kind, event.operation_class, event.reference,
            event.amount_minor, event.currency) AS differs
    FROM jsonb_to_recordset(%(events)s) AS event(
        n int, d int, delivery_id bigint, tenant_id bigint, source_id bigint,
        key text, kind text, queue text, downstream_key text, asked_by text,
        operation_class text, reference text, amount_minor bigint, currency text,
        exponent smallint, batch text, occurred_at timestamptz,
        held text, outcome text, reason text, headers jsonb, replayable boolean,
        unconfirmed boolean)
    JOIN unnest(%(bodies)s::bytea[]) WITH ORDINALITY AS body(raw, n) USING (n)
    LEFT JOIN LATERAL (
        SELECT * FROM reliability_processedkey claimed
        WHERE claimed.tenant_id = event.tenant_id AND claimed.source_id = event.source_id
          AND claimed.key = event.key
        LIMIT 1) known ON true
    ORDER BY event.key
),
fresh_operation AS (
    INSERT INTO reliability_operation
        (tenant_id, source_id, operation_class, reference, key_id,
         amount_minor, currency, exponent, batch, occurred_at)
    SELECT tenant_id, source_id, operation_class, reference, new_id,
           amount_minor, currency, exponent, batch, coalesce(occurred_at, %(now)s)
    FROM asked
    WHERE operation_class IS NOT NULL AND known_id IS NULL
    ON CONFLICT (tenant_id, source_id, operation_class, reference) DO NOTHING
    RETURNING key_id
),
fresh_key AS (
    INSERT INTO reliability_processedkey
        (id, tenant_id, source_id, key, kind, downstream_key, operation_class,
         operation_reference, amount_minor, currency, exponent, absorbed, occurred_at,
         asked_by, body_sha256, claimed_at, unconfirmed)
    SELECT new_id, tenant_id, source_id, key, kind, downstream_key, operation_class,
           reference, amount_minor, currency, exponent,
           operation_class IS NOT NULL AND new_id NOT IN (SELECT key_id FROM fresh_operation),
           occurred_at, asked_by, sha256(raw), %(now)s, coalesce(unconfirmed, false)
    FROM asked
    WHERE known_id IS NULL
    ON CONFLICT (tenant_id, source_id, key) DO NOTHING
    RETURNING id, absorbed
),
fresh_job AS (
    INSERT INTO reliability_job
        (tenant_id, source_id, key_id, kind, queue, state, held, run_at, created_at, ended_at)
    SELECT tenant_id, source_id, new_id, kind, queue,
           CASE WHEN outcome IS NULL THEN 'ready' ELSE 'dead' END,
           held, least(%(now)s, clock_timestamp()), %(now)s,
           CASE WHEN outcome IS NULL THEN NULL ELSE %(now)s END
    FROM asked JOIN fresh_key ON fresh_key.id = asked.new_id
    WHERE NOT absorbed
    RETURNING id, key_id, public_id, state
),
fresh_letter AS (
    INSERT INTO reliability_deadletter
        (tenant_id, source_id, job_id, round, kind, outcome, reason, fingerprint,
         amount_minor, currency, exponent, buried_at)
    SELECT tenant_id, source_id, fresh_job.id, 1, kind, outcome, reason,
           outcome || ': ' || kind, amount_minor, currency, exponent, %(now)s
    FROM asked JOIN fresh_job ON fresh_job.key_id = asked.new_id
    WHERE outcome IS NOT NULL
),
judged AS MATERIALIZED (
    SELECT asked.*, coalesce(known_id, fresh_key.id) AS key_id,
           CASE WHEN absorbed THEN 'absorbed'
                WHEN fresh_key.id IS NOT NULL THEN 'accepted'
                WHEN known_id IS NULL THEN NULL
                WHEN differs THEN 'conflict'
                ELSE 'duplicate' END AS verdict
    FROM asked LEFT JOIN fresh_key ON fresh_key.id = asked.new_id
),
kept_body AS (
    -- Bytes that are new to a known key are kept beside its first ones.
    INSERT INTO reliability_body
        (tenant_id, key_id, raw, headers, sha256, first, replayable, created_at)
    SELECT tenant_id, key_id, raw, headers, sha256(raw), known_id IS NULL, replayable,
           %(now)s
    FROM judged
    LEFT JOIN LATERAL (
        SELECT same.id FROM reliability_body same
        WHERE same.key_id = judged.known_id AND same.sha256 = sha256(judged.raw)
        LIMIT 1) same ON true
    WHERE verdict IS NOT NULL
      AND (known_id IS NULL OR erased_at IS NULL AND same.id IS NULL)
),
delivery AS MATERIALIZED (
    SELECT nextval('reliability_delivery_id_seq') AS id, fact.*
    FROM jsonb_to_recordset(%(deliveries)s) AS fact(
        d int, tenant_id bigint, source_id bigint, peer inet, size_bytes int, sha256 text,
        answer smallint, scheme text, secret_id bigint, verifier_version smallint,
        signed_at timestamptz)
),
kept_delivery AS (
    INSERT INTO reliability_delivery
        (id, tenant_id, source_id, received_at, peer, size_bytes, sha256, answer, scheme,
         secret_id, verifier_version, signed_at)
    SELECT id, tenant_id, source_id, %(now)s, peer, size_bytes, decode(sha256, 'hex'),
           answer, scheme, secret_id, verifier_version, signed_at
    FROM delivery
),
receipt AS (
    INSERT INTO reliability_receipt
        (tenant_id, source_id, key_id, delivery_id, verdict, suspected_replay, differs, at)
    SELECT judged.tenant_id, judged.source_id, key_id, coalesce(delivery_id, delivery.id), verdict,
           known_id IS NULL AND replayable AND EXISTS (
               SELECT FROM reliability_body twin
               JOIN reliability_processedkey other ON other.id = twin.key_id
               WHERE twin.replayable AND twin.sha256 = sha256(raw)
                 AND other.source_id = judged.source_id),
           CASE WHEN verdict = 'conflict' THEN jsonb_strip_nulls(jsonb_build_object(
               'kind', kind, 'operation_class', operation_class, 'reference', reference,
               'amount_minor', amount_minor, 'currency', currency)) END,
           %(now)s
    FROM judged LEFT JOIN delivery USING (d)
    WHERE verdict IS NOT NULL
)
SELECT judged.n, judged.verdict, coalesce(fresh_job.public_id, job.public_id) AS job_id,
       job.result,
       CASE WHEN purged_done_at IS NULL THEN coalesce(fresh_job.state, job.state) ELSE 'done' END
           AS state,
       coalesce(purged_done_at, CASE job.state WHEN 'done' THEN job.ended_at END) AS done_at,
       claimant.key AS claimant, coalesce(judged.delivery_id, delivery.id) AS delivery_id
FROM judged
LEFT JOIN delivery USING (d)
LEFT JOIN fresh_job ON fresh_job.key_id = judged.new_id
LEFT JOIN LATERAL (
    SELECT * FROM reliability_job mine WHERE mine.key_id = judged.known_id LIMIT 1) job ON true
LEFT JOIN LATERAL (
    SELECT key_id FROM reliability_operation operation
    WHERE operation.tenant_id = judged.tenant_id AND operation.source_id = judged.source_id
      AND operation.operation_class =
          CASE WHEN known_id IS NULL THEN judged.operation_class ELSE known_class END
      AND operation.reference =
          CASE WHEN known_id IS NULL THEN judged.reference ELSE known_reference END
    LIMIT 1) claimed ON verdict <> 'accepted'
LEFT JOIN LATERAL (
    SELECT key FROM reliability_processedkey holder
    WHERE holder.id = claimed.key_id AND holder.id IS DISTINCT FROM judged.known_id
    LIMIT 1) claimant ON true
ORDER BY judged.n
