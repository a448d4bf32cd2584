-- Mark jobs done, each only while its token is still the holder's, and write their attempts.
--
--   ids, tokens, results, started    arrays, one element a job
--   worker
--
-- -> id of every job that was finished here; a job that is not among them was taken over
--
-- Locks the finished rows. The fence decides: lease_expires_at says "running" without walking the
-- partial index of running jobs once per job.

WITH ended AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(results)s::jsonb[],
                         %(started)s::timestamptz[]) AS e(id, token, result, started_at)
),
done AS (
    UPDATE reliability_job job SET
        state = 'done', lease_expires_at = NULL, intent_at = NULL, result = ended.result,
        ended_at = clock_timestamp()
    FROM ended
    WHERE job.id = ANY(%(ids)s) AND job.id = ended.id
      AND job.token = ended.token AND job.lease_expires_at IS NOT NULL
    RETURNING job.id, job.tenant_id, job.round, job.starts, job.token, ended.started_at
),
written AS (
    INSERT INTO reliability_attempt
        (tenant_id, job_id, round, number, token, outcome, worker, started_at, ended_at)
    SELECT tenant_id, id, round, starts, token, 'done', %(worker)s, started_at, clock_timestamp()
    FROM done
)
SELECT id FROM done
