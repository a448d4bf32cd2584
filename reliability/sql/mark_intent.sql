-- Record, before the first outside effect, that it is about to happen. Committed on its own.
--
--   id, token
--
-- -> id, or no row: the lease was lost, or the mark is there already. Locks the job.

UPDATE reliability_job SET intent_at = clock_timestamp()
WHERE id = %(id)s AND token = %(token)s AND lease_expires_at > clock_timestamp()
  AND intent_at IS NULL
RETURNING id
