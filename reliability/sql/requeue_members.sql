-- Requeue the next letters of a redrive, oldest first: each once, or skipped with the reason.
--
--   redrive_id, limit, now
--   asking            kinds whose verify must have been asked lately
--   asked_since       no earlier answer counts
--   actor, reason     written on the letters
--   lane
--   apart             interval from one letter to the next, so that live work comes in between
--
-- -> queue, outcome, letters: counts, to ring and to tell by.
--
-- Locks the members, their jobs and letters; passes over jobs that others hold, which stay
-- pending. The version is the fence: a letter that moved since the set was frozen is skipped.

WITH next AS MATERIALIZED (
    SELECT member.id, member.letter_id, member.job_id, member.version, member.verdict,
           member.asked_at
    FROM reliability_redrivemember member
    WHERE member.redrive_id = %(redrive_id)s AND member.outcome = 'pending'
      AND (member.asked_at >= %(asked_since)s OR NOT EXISTS (
          SELECT FROM reliability_deadletter letter
          WHERE letter.id = member.letter_id AND letter.kind = ANY(%(asking)s)))
    ORDER BY member.letter_id
    LIMIT %(limit)s
),
held AS MATERIALIZED (
    SELECT next.*, job.state, job.version AS now_at, job.not_after, job.key_id, job.queue
    FROM next JOIN reliability_job job ON job.id = next.job_id
    FOR NO KEY UPDATE OF job SKIP LOCKED
),
judged AS MATERIALIZED (
    SELECT held.id, held.letter_id, held.job_id, held.queue,
           row_number() OVER (ORDER BY held.letter_id) - 1 AS before,
           CASE WHEN held.state <> 'dead' OR held.now_at <> held.version
                    THEN 'moved on since the set was frozen'
                WHEN held.not_after <= %(now)s
                     AND NOT (held.verdict = 'will run' AND held.asked_at >= %(asked_since)s)
                    THEN 'its window closed before its turn'
                WHEN EXISTS (SELECT FROM reliability_processedkey known
                             WHERE known.id = held.key_id AND known.erased_at IS NOT NULL)
                    THEN 'its body was erased'
                ELSE '' END AS why
    FROM held
),
moved AS (
    UPDATE reliability_job job SET
        state = 'ready', version = job.version + 1, held = '', lane = %(lane)s,
        run_at = %(now)s + judged.before * %(apart)s::interval,
        not_after = CASE WHEN job.not_after <= %(now)s THEN NULL ELSE job.not_after END,
        ended_at = NULL, round = job.round + 1, round_starts = job.starts,
        round_crashes = job.crashes, round_crashes_alone = job.crashes_alone,
        round_releases = job.releases
    FROM judged
    WHERE job.id = ANY(ARRAY(SELECT job_id FROM judged WHERE why = ''))
      AND job.id = judged.job_id
),
closed AS (
    UPDATE reliability_deadletter SET
        status = 'requeued', closed_at = %(now)s, closed_by = %(actor)s,
        closed_reason = %(reason)s
    WHERE id = ANY(ARRAY(SELECT letter_id FROM judged WHERE why = ''))
),
told AS (
    UPDATE reliability_redrivemember member SET
        outcome = CASE WHEN judged.why = '' THEN 'running' ELSE 'skipped' END,
        why = judged.why,
        started_at = CASE WHEN judged.why = '' THEN %(now)s ELSE NULL END,
        settled_at = CASE WHEN judged.why = '' THEN NULL ELSE %(now)s END
    FROM judged WHERE member.id = judged.id
    RETURNING member.outcome, judged.queue
)
SELECT queue, outcome, count(*)::int AS letters FROM told GROUP BY queue, outcome
