-- Accept the result of a holder that came back after the sweep took its job over, if nobody newer
-- started it and no person decided on it: the effect has happened, doing it again would be worse.
--
--   id, token, round      as leased; a requeue begins another round, and that is a decision
--   result, started, worker
--
-- -> id, or no row: the job moved on. Locks the job and its letter.

WITH done AS (
    UPDATE reliability_job job SET
        state = 'done', intent_at = NULL, result = %(result)s, ended_at = clock_timestamp(),
        version = version + 1
    WHERE job.id = %(id)s AND job.token = %(token)s AND job.round = %(round)s
      AND (job.state = 'ready' OR (job.state = 'dead' AND EXISTS (
              SELECT FROM reliability_deadletter letter
              WHERE letter.job_id = job.id AND letter.round = job.round
                AND letter.status = 'open' AND letter.outcome = 'unknown')))
    RETURNING job.id, job.tenant_id, job.round, job.starts, job.token
),
closed AS (
    UPDATE reliability_deadletter letter SET
        status = 'done late', closed_at = clock_timestamp(), closed_by = %(worker)s,
        closed_reason = 'its worker came back with the result'
    FROM done WHERE letter.job_id = done.id AND letter.round = done.round
      AND letter.status = 'open'
),
written AS (
    INSERT INTO reliability_attempt
        (tenant_id, job_id, round, number, token, outcome, worker, started_at, ended_at)
    SELECT tenant_id, id, round, starts, token, 'late', %(worker)s, %(started)s, clock_timestamp()
    FROM done
)
SELECT id FROM done
