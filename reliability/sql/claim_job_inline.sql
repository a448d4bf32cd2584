-- Lease one job that was claimed in the same transaction, for the caller who does it at once.
--
--   public_id, worker
--   lease      interval; by the database's clock
--
-- -> Leased: no row where somebody started it before
--
-- Locks the job. Its intent stands from the start: the caller begins the effect right away, so a
-- start that is lost is never repeated.

UPDATE reliability_job SET
    state = 'running',
    starts = starts + 1,
    token = nextval('reliability_token'),
    worker = %(worker)s,
    started_at = clock_timestamp(),
    intent_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + %(lease)s
WHERE public_id = %(public_id)s AND state = 'ready' AND starts = 0
RETURNING id, token, alone, tenant_id, source_id, key_id, kind, round, starts, crashes, releases,
          round_starts, round_crashes, round_releases, started_at, lease_expires_at
