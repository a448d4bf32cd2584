-- Make a letter of an event that its provider did not confirm.
--
--   id, reason
--
-- -> id, or no row: it is confirmed or gone by now. Locks the job.

WITH buried AS (
    UPDATE reliability_job SET
        state = 'dead', held = '', ended_at = clock_timestamp(), version = version + 1
    WHERE id = %(id)s AND state = 'ready' AND held = 'unconfirmed'
    RETURNING id, tenant_id, source_id, key_id, kind, round
),
letter AS (
    INSERT INTO reliability_deadletter
        (tenant_id, source_id, job_id, round, kind, outcome, reason, fingerprint,
         amount_minor, currency, exponent, buried_at)
    SELECT buried.tenant_id, buried.source_id, buried.id, round, buried.kind, 'suspect',
           %(reason)s, 'suspect: ' || buried.kind, amount_minor, currency, exponent,
           clock_timestamp()
    FROM buried JOIN reliability_processedkey known ON known.id = buried.key_id
)
SELECT id FROM buried
