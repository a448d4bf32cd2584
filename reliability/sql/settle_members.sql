-- Write the outcome of letters a redrive has on their way, where there is one by now.
--
--   redrive_id, limit, now
--
-- -> one row per outcome written, with its count. Locks the members it writes.
--
-- A job back in a later round than the one it was given became a letter again; one that is dead
-- in its old round was taken back by hand.

-- OFFSET 0 keeps the shape: from the members to their jobs, by key, whatever the statistics say of a
-- table that was empty a moment ago.

WITH ended AS MATERIALIZED (
    SELECT member.id, job.state, job.round AS now_in, member.round
    FROM reliability_redrivemember member
    CROSS JOIN LATERAL (
        SELECT state, round FROM reliability_job WHERE id = member.job_id OFFSET 0
    ) job
    WHERE member.redrive_id = %(redrive_id)s AND member.outcome = 'running'
      AND NOT (job.state IN ('ready', 'running') AND job.round = member.round + 1)
    ORDER BY member.letter_id
    LIMIT %(limit)s
),
settled AS (
    UPDATE reliability_redrivemember member SET
        settled_at = %(now)s,
        outcome = CASE
            WHEN ended.now_in <= ended.round THEN 'skipped'
            WHEN ended.now_in = ended.round + 1 AND ended.state = 'done' THEN 'succeeded'
            ELSE 'failed again' END,
        why = CASE WHEN ended.now_in <= ended.round THEN 'taken back before it started' ELSE '' END
    FROM ended WHERE member.id = ended.id
    RETURNING member.outcome
)
SELECT outcome, count(*)::int AS letters FROM settled GROUP BY outcome
