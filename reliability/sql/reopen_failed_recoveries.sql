-- Open again what was being recovered and has become a dead letter since.
--
--   limit   at most so many
--
-- -> id and status of each. Locks those rows and passes over locked ones.

WITH failed AS (
    SELECT known.id, operation.key_id
    FROM reliability_discrepancy known
    JOIN reliability_operation operation
      ON operation.tenant_id = known.tenant_id AND operation.source_id = known.source_id
     AND operation.operation_class = known.operation_class
     AND operation.reference = known.reference
    JOIN reliability_job job ON job.key_id = operation.key_id
    WHERE known.status = 'recovering' AND job.state IN ('dead', 'discarded')
    ORDER BY known.id
    LIMIT %(limit)s
    FOR UPDATE OF known SKIP LOCKED
)
UPDATE reliability_discrepancy known
SET status = 'open', version = known.version + 1,
    cause = CASE WHEN job.state = 'dead' THEN 'in_dead_letter' ELSE 'discarded' END,
    job_id = job.id
FROM failed JOIN reliability_job job ON job.key_id = failed.key_id
WHERE known.id = failed.id
RETURNING known.id, known.status
