-- Empty done jobs in place: their keys stay and remember when they were done.
--
--   before    what was done earlier goes
--   limit     jobs
--
-- -> id of each purged key
--
-- Locks the jobs, passes over rows that others hold. Found by their last attempt, whose index is
-- there already: done jobs need none of their own. Only done jobs: a letter is never purged
-- unasked.

WITH old AS MATERIALIZED (
    SELECT job.id, job.key_id, job.ended_at
    FROM reliability_attempt attempt
    JOIN reliability_job job ON job.id = attempt.job_id
    WHERE attempt.ended_at < %(before)s AND attempt.outcome IN ('done', 'late')
      AND job.state = 'done' AND job.ended_at < %(before)s
    ORDER BY attempt.ended_at
    LIMIT %(limit)s
    FOR UPDATE OF job SKIP LOCKED
),
marked AS (
    UPDATE reliability_processedkey known
    SET purged_at = clock_timestamp(), done_at = old.ended_at
    FROM old WHERE known.id = old.key_id
    RETURNING known.id
),
edits AS (
    DELETE FROM reliability_bodyedit edit USING reliability_deadletter letter, old
    WHERE edit.letter_id = letter.id AND letter.job_id = old.id
),
bodies AS (DELETE FROM reliability_body body USING old WHERE body.key_id = old.key_id),
letters AS (DELETE FROM reliability_deadletter letter USING old WHERE letter.job_id = old.id),
answers AS (DELETE FROM reliability_destinationanswer said USING old WHERE said.job_id = old.id),
effects AS (DELETE FROM reliability_effect effect USING old WHERE effect.job_id = old.id),
notices AS (DELETE FROM reliability_notice notice USING old WHERE notice.job_id = old.id),
attempts AS (DELETE FROM reliability_attempt attempt USING old WHERE attempt.job_id = old.id),
discrepancies AS (
    UPDATE reliability_discrepancy found SET job_id = NULL FROM old WHERE found.job_id = old.id
),
jobs AS (DELETE FROM reliability_job job USING old WHERE job.id = old.id)
SELECT id FROM marked
