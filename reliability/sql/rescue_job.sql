-- Take a job back from a worker whose lease ran out, so that it is started again.
--
--   id, token      as the sweep saw them
--   worker, started
--
-- -> id and queue, or no row: its holder or another sweep was first. Locks the job.

WITH rescued AS (
    UPDATE reliability_job SET
        state = 'ready', lease_expires_at = NULL, intent_at = NULL, run_at = clock_timestamp(),
        crashes = crashes + 1, crashes_alone = crashes_alone + CASE WHEN alone THEN 1 ELSE 0 END
    WHERE id = %(id)s AND token = %(token)s AND state = 'running'
      AND lease_expires_at <= clock_timestamp()
    RETURNING id, queue, tenant_id, round, starts, token
),
written AS (
    INSERT INTO reliability_attempt
        (tenant_id, job_id, round, number, token, outcome, message, worker, started_at, ended_at)
    SELECT tenant_id, id, round, starts, token, 'lost', 'its worker was lost: the lease ran out',
           %(worker)s, %(started)s, clock_timestamp()
    FROM rescued
)
SELECT id, queue FROM rescued
