-- Leave a job running past its worker: its destination will report when it is done.
--
--   id, token      the holder's
--   after          interval until it counts as lost
--   worker         the mark of such jobs, in place of the worker's name
--
-- -> id, or no row: the lease was lost. Locks the job.

UPDATE reliability_job SET
    lease_expires_at = clock_timestamp() + %(after)s, worker = %(worker)s
WHERE id = %(id)s AND token = %(token)s AND lease_expires_at IS NOT NULL
RETURNING id
