-- Record that one named effect of a job happened, with its answer. Committed on its own.
--
--   tenant_id, id, round, token    of the job, as leased
--   name, key, result              of the effect
--
-- -> result: the answer that counts, which is the first one recorded
--
-- Locks the mark and, while the lease is held, the job, whose intent it settles. Not fenced: that
-- the effect happened is a fact, whoever holds the job by now.

WITH confirmed AS (
    INSERT INTO reliability_effect AS known
        (tenant_id, job_id, name, downstream_key, round, token, begun_at, confirmed_at, result)
    VALUES (%(tenant_id)s, %(id)s, %(name)s, %(key)s, %(round)s, %(token)s, clock_timestamp(),
            clock_timestamp(), %(result)s)
    ON CONFLICT (job_id, name) DO UPDATE SET
        confirmed_at = coalesce(known.confirmed_at, excluded.confirmed_at),
        result = CASE WHEN known.confirmed_at IS NULL THEN excluded.result ELSE known.result END
    RETURNING result
),
settled AS (
    UPDATE reliability_job SET intent_at = NULL
    WHERE id = %(id)s AND token = %(token)s AND lease_expires_at IS NOT NULL
)
SELECT result FROM confirmed
