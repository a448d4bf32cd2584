-- End the letters of a redrive that are already applied, as a person decided.
--
--   redrive_id, now, actor, reason
--
-- -> public_id of every letter that was resolved. Locks jobs, letters and members; the version
-- is the fence: what moved since the set was frozen stays as it is.

WITH moved AS (
    UPDATE reliability_job job SET state = 'resolved', version = job.version + 1
    FROM reliability_redrivemember member
    WHERE member.redrive_id = %(redrive_id)s AND member.verdict = 'already applied'
      AND member.outcome IN ('left alone', 'skipped')
      AND job.id = member.job_id AND job.state = 'dead' AND job.version = member.version
    RETURNING member.id, member.letter_id, member.why
),
told AS (
    UPDATE reliability_redrivemember member SET settled_at = %(now)s
    FROM moved WHERE member.id = moved.id
)
UPDATE reliability_deadletter letter SET
    status = 'resolved', closed_at = %(now)s, closed_by = %(actor)s,
    closed_reason = %(reason)s || ' (' || moved.why || ')'
FROM moved WHERE letter.id = moved.letter_id
RETURNING letter.public_id
