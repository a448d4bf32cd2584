-- Lease a batch of due jobs that have no crash behind them in this round.
--
--   queue, limit, worker
--   lease      interval; by the database's clock, so that skewed workers do not matter
--   without    bigint[]: sources nothing may be started for now
--   windows    jsonb: kind -> seconds its downstream remembers a key, where it forgets
--
-- -> Leased: one row per job, in the order they became due
--
-- Locks the leased rows, passes over rows that others hold. The start is counted and the token
-- drawn here, before any work: a worker that dies later leaves both behind.

WITH leased AS (
    UPDATE reliability_job SET
        state = 'running',
        starts = starts + 1,
        token = nextval('reliability_token'),
        alone = false,
        worker = %(worker)s,
        started_at = clock_timestamp(),
        lease_expires_at = clock_timestamp() + %(lease)s,
        not_after = coalesce(not_after, clock_timestamp()
            + make_interval(secs => 0.9 * (%(windows)s ->> kind)::float))
    WHERE id = ANY(ARRAY(
        SELECT id FROM reliability_job
        WHERE state = 'ready' AND held = '' AND crashes = round_crashes
          AND queue = %(queue)s AND run_at <= clock_timestamp()
          AND (not_after IS NULL OR not_after > clock_timestamp())
          AND NOT source_id = ANY(%(without)s::bigint[])
        ORDER BY lane, run_at, id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED))
    RETURNING id, token, alone, lane, run_at, tenant_id, source_id, key_id, kind, round, starts,
              crashes, releases, round_starts, round_crashes, round_releases, started_at,
              lease_expires_at
)
SELECT id, token, alone, tenant_id, source_id, key_id, kind, round, starts, crashes, releases,
       round_starts, round_crashes, round_releases, started_at, lease_expires_at
FROM leased ORDER BY lane, run_at, id
