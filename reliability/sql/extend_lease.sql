-- Extend the lease of a running job whose handler is alive, never past its deadline.
--
--   id, token        the holder's
--   lease, deadline  intervals; the deadline counts from the start
--
-- -> over: whether the deadline has passed; no row: the lease was lost. Locks the job.

UPDATE reliability_job SET
    lease_expires_at = greatest(
        lease_expires_at, least(clock_timestamp() + %(lease)s, started_at + %(deadline)s))
WHERE id = %(id)s AND token = %(token)s AND lease_expires_at > clock_timestamp()
RETURNING started_at + %(deadline)s <= clock_timestamp() AS over
