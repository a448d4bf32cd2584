-- Close what was missing and has taken effect since: the operation is done, with their amount.
--
--   now
--   limit    at most so many
--
-- -> id and status of each closed one. Locks those rows and passes over locked ones.

WITH settled AS (
    SELECT known.id, operation.key_id, job.ended_at
    FROM reliability_discrepancy known
    JOIN reliability_operation operation
      ON operation.tenant_id = known.tenant_id AND operation.source_id = known.source_id
     AND operation.operation_class = known.operation_class
     AND operation.reference = known.reference
    JOIN reliability_job job ON job.key_id = operation.key_id
    WHERE known.status IN ('open', 'recovering') AND known.family = 'missing'
      AND job.state IN ('done', 'resolved')
      AND (operation.amount_minor IS NULL
           OR (abs(operation.amount_minor), operation.currency, operation.exponent)
              = (abs(known.their_minor), known.currency, known.exponent))
    ORDER BY known.id
    LIMIT %(limit)s
    FOR UPDATE OF known SKIP LOCKED
)
UPDATE reliability_discrepancy known
SET status = CASE WHEN known.status = 'recovering' THEN 'recovered' ELSE 'resolved' END,
    resolution = 'automatic', closed_at = %(now)s, closed_by = 'the compare',
    closed_reason = format('event %%s was accepted %%s UTC and took effect %%s UTC', claimed.key,
        to_char(claimed.claimed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
        to_char(settled.ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')),
    version = known.version + 1
FROM settled JOIN reliability_processedkey claimed ON claimed.id = settled.key_id
WHERE known.id = settled.id
RETURNING known.id, known.status
