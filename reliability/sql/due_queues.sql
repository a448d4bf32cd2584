-- Name the queues in which a job has been due for longer than a while without a start.
--
--   since      interval; by the database's clock, as leases are
--
-- -> DueQueue. Asked once a second by each worker; no locks.

SELECT queue
FROM (VALUES ('local'), ('outside')) AS drained(queue)
WHERE EXISTS (
    SELECT FROM reliability_job job
    WHERE job.state = 'ready' AND job.held = '' AND job.queue = drained.queue
      AND job.run_at <= clock_timestamp() - %(since)s::interval)
   OR queue = 'outside' AND EXISTS (
    SELECT FROM reliability_job job
    WHERE job.state = 'ready' AND job.held = 'unconfirmed'
      AND job.run_at <= clock_timestamp() - %(since)s::interval)
