-- Freeze the letters of a redrive with a first verdict on each, in one pass over what matched.
--
-- Positional, since the chosen ones (a query of open letters of the tenant, oldest first: id, job_id,
-- round, kind, outcome and reason, so that none is read twice) brings its own parameters:
--   redrive_id, tenant_id, now
--   sure        kinds whose effects commit with their done mark: a dead letter had none
--   known       kinds with a handler
--   the parameters of that query, put in by freeze.py
--
-- -> nothing. Reads without locks: a letter that moves meanwhile is skipped at its turn.

INSERT INTO reliability_redrivemember
    (redrive_id, tenant_id, letter_id, job_id, round, version, verdict, outcome, why)
SELECT asked.redrive_id, asked.tenant_id, letter.id, job.id, letter.round, job.version,
       first.verdict,
       CASE first.verdict WHEN 'will run' THEN 'pending' ELSE 'left alone' END,
       CASE first.verdict
           WHEN 'will run' THEN 'its effects commit with its done mark: nothing was kept'
           WHEN 'running' THEN 'in R-' || elsewhere.redrive_id
           WHEN 'cannot run' THEN
               CASE WHEN known.erased_at IS NOT NULL THEN 'its body was erased'
                    WHEN letter.kind = ANY(asked.known) THEN letter.reason
                    ELSE 'no handler of this kind is installed' END
           WHEN 'window closed' THEN
               CASE WHEN letter.outcome = 'expired' THEN letter.reason
                    ELSE 'downstream may have forgotten the key' END
           ELSE 'nobody was asked' END
FROM (SELECT %s::bigint AS redrive_id, %s::bigint AS tenant_id, %s::timestamptz AS now,
             %s::text[] AS sure, %s::text[] AS known) asked
CROSS JOIN ({chosen}) letter
-- OFFSET 0 keeps the shape: each job by its key. Joined freely, all dead jobs there are may be read.
CROSS JOIN LATERAL (
    SELECT id, key_id, version, not_after FROM reliability_job
    WHERE id = letter.job_id AND state = 'dead' OFFSET 0
) job
JOIN reliability_processedkey known ON known.id = job.key_id
LEFT JOIN (
    -- Read once, from the redrives at work: asked per letter, it would read the rows written here.
    SELECT member.letter_id, min(member.redrive_id) AS redrive_id
    FROM reliability_redrive redrive
    JOIN reliability_redrivemember member ON member.redrive_id = redrive.id
    WHERE redrive.state IN ('waiting', 'running', 'paused', 'stopped')
      AND member.outcome = 'pending'
    GROUP BY member.letter_id
) elsewhere ON elsewhere.letter_id = letter.id
CROSS JOIN LATERAL (SELECT CASE
    WHEN letter.outcome IN ('unparseable', 'unroutable', 'suspect')
        OR letter.kind <> ALL(asked.known) OR known.erased_at IS NOT NULL THEN 'cannot run'
    WHEN elsewhere.redrive_id IS NOT NULL THEN 'running'
    WHEN letter.outcome = 'expired' OR job.not_after <= asked.now THEN 'window closed'
    WHEN letter.kind = ANY(asked.sure) THEN 'will run'
    ELSE 'cannot tell' END AS verdict) first
