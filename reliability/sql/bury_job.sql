-- Turn a running job into a dead letter, in one statement with its last attempt.
--
--   id, token                         the holder's, or the one the sweep saw
--   expired_only                      bool: only if the lease has run out (the sweep)
--   outcome, reason                   of the letter
--   attempt                           failed or lost
--   error_type, message, traceback, fingerprint, started, worker
--
-- -> id, or no row: the job moved on. Locks the job. A first failure is to be told to whoever
--    asked for it.

WITH buried AS (
    UPDATE reliability_job SET
        state = 'dead', lease_expires_at = NULL, intent_at = NULL, ended_at = clock_timestamp(),
        version = version + 1,
        crashes = crashes + CASE WHEN %(expired_only)s THEN 1 ELSE 0 END,
        crashes_alone = crashes_alone + CASE WHEN %(expired_only)s AND alone THEN 1 ELSE 0 END
    WHERE id = %(id)s AND token = %(token)s AND lease_expires_at IS NOT NULL
      AND (NOT %(expired_only)s OR lease_expires_at <= clock_timestamp())
    RETURNING id, tenant_id, source_id, key_id, kind, round, starts, token
),
letter AS (
    INSERT INTO reliability_deadletter
        (tenant_id, source_id, job_id, round, kind, outcome, reason, error_type, message,
         fingerprint, amount_minor, currency, exponent, buried_at)
    SELECT buried.tenant_id, buried.source_id, buried.id, round, buried.kind, %(outcome)s,
           %(reason)s, %(error_type)s, %(message)s, %(fingerprint)s, amount_minor, currency,
           exponent, clock_timestamp()
    FROM buried JOIN reliability_processedkey known ON known.id = buried.key_id
),
written AS (
    INSERT INTO reliability_attempt
        (tenant_id, job_id, round, number, token, outcome, error_type, message, traceback,
         worker, started_at, ended_at)
    SELECT tenant_id, id, round, starts, token, %(attempt)s, %(error_type)s, %(message)s,
           %(traceback)s, %(worker)s, %(started)s, clock_timestamp()
    FROM buried
),
told AS (
    INSERT INTO reliability_notice (tenant_id, job_id, email, due_at)
    SELECT buried.tenant_id, buried.id, asked_by, clock_timestamp()
    FROM buried JOIN reliability_processedkey known ON known.id = buried.key_id
    WHERE position('@' IN asked_by) > 0
    ON CONFLICT (job_id) DO NOTHING
)
SELECT id FROM buried
