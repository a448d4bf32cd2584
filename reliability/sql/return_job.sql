-- Give a job back to be started again: after a failure, or unstarted by a worker that must stop.
--
--   id, token                        the holder's
--   after                            interval until it is due
--   released                         bool: it never really started, and costs no attempt
--   error_type, message, traceback   empty where released
--   started, worker
--
-- -> id, or no row: the lease was lost. Locks the job. A first failure is to be told to whoever
--    asked for it.

WITH returned AS (
    UPDATE reliability_job SET
        state = 'ready', lease_expires_at = NULL, intent_at = NULL,
        run_at = clock_timestamp() + %(after)s,
        releases = releases + CASE WHEN %(released)s THEN 1 ELSE 0 END
    WHERE id = %(id)s AND token = %(token)s AND lease_expires_at IS NOT NULL
    RETURNING id, tenant_id, key_id, round, starts, token, run_at
),
written AS (
    INSERT INTO reliability_attempt
        (tenant_id, job_id, round, number, token, outcome, error_type, message, traceback,
         worker, started_at, ended_at, retry_at)
    SELECT tenant_id, id, round, starts, token,
           CASE WHEN %(released)s THEN 'released' ELSE 'failed' END,
           %(error_type)s, %(message)s, %(traceback)s, %(worker)s, %(started)s,
           clock_timestamp(), run_at
    FROM returned
),
told AS (
    INSERT INTO reliability_notice (tenant_id, job_id, email, due_at)
    SELECT returned.tenant_id, returned.id, asked_by, clock_timestamp()
    FROM returned JOIN reliability_processedkey known ON known.id = returned.key_id
    WHERE position('@' IN asked_by) > 0 AND NOT %(released)s
    ON CONFLICT (job_id) DO NOTHING
)
SELECT id FROM returned
