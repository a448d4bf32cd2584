-- Bury jobs whose time has passed unstarted: the downstream may have forgotten their key.
--
--   limit
--
-- -> id of each. Locks them, passes over rows that others hold.

WITH expired AS (
    UPDATE reliability_job SET
        state = 'dead', ended_at = clock_timestamp(), version = version + 1
    WHERE id = ANY(ARRAY(
        SELECT id FROM reliability_job
        WHERE state = 'ready' AND not_after <= clock_timestamp()
        ORDER BY not_after
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED))
    RETURNING id, tenant_id, source_id, key_id, kind, round, not_after
),
letter AS (
    INSERT INTO reliability_deadletter
        (tenant_id, source_id, job_id, round, kind, outcome, reason, fingerprint,
         amount_minor, currency, exponent, buried_at)
    SELECT expired.tenant_id, expired.source_id, expired.id, round, expired.kind, 'expired',
           'its window closed at ' || to_char(not_after AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
               || ' UTC: downstream may have forgotten its key',
           'expired: ' || expired.kind, amount_minor, currency, exponent, clock_timestamp()
    FROM expired JOIN reliability_processedkey known ON known.id = expired.key_id
)
SELECT id FROM expired
