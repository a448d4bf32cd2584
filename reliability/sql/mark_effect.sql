-- Mark, before it is begun, that one named effect of a job is about to happen. Committed on its own.
--
--   id, token      of the job, the holder's
--   name, key      of the effect: its name, its downstream key
--
-- -> marked: false where the same round began it before; no row: the lease was lost
--
-- Locks the job and the mark. An unconfirmed mark of an earlier round is begun again: a person
-- asked for that round knowing the doubt.

WITH held AS (
    UPDATE reliability_job SET intent_at = clock_timestamp()
    WHERE id = %(id)s AND token = %(token)s AND lease_expires_at > clock_timestamp()
    RETURNING id, tenant_id, round, token
),
marked AS (
    INSERT INTO reliability_effect AS known
        (tenant_id, job_id, name, downstream_key, round, token, begun_at)
    SELECT tenant_id, id, %(name)s, %(key)s, round, token, clock_timestamp() FROM held
    ON CONFLICT (job_id, name) DO UPDATE SET
        round = excluded.round, token = excluded.token, begun_at = excluded.begun_at
    WHERE known.confirmed_at IS NULL AND known.round < excluded.round
    RETURNING job_id
)
SELECT EXISTS (SELECT FROM marked) AS marked FROM held
