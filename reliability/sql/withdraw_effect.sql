-- Take a mark back: the handler says that the effect did not happen. Committed on its own.
--
--   id, token, name
--
-- -> id of the mark, or no row. Locks the mark and, while the lease is held, the job.

WITH settled AS (
    UPDATE reliability_job SET intent_at = NULL
    WHERE id = %(id)s AND token = %(token)s AND lease_expires_at IS NOT NULL
)
DELETE FROM reliability_effect
WHERE job_id = %(id)s AND name = %(name)s AND token = %(token)s AND confirmed_at IS NULL
RETURNING id
