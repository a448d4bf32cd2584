-- Close the open discrepancies a report contradicts: their operation matches now, or the same
-- day's newer report no longer shows them.
--
--   report_id
--   families   as in carry_discrepancies
--   withheld   bool: only a match closes anything
--   now
--
-- -> id and status of each closed one. Locks those rows.

WITH known AS MATERIALIZED (
    SELECT known.*, report.day, report.version AS report_version
    FROM reliability_report report
    JOIN reliability_discrepancy known
      ON known.source_id = report.source_id AND known.status IN ('open', 'recovering')
    WHERE report.id = %(report_id)s
),
said AS MATERIALIZED (
    -- Of a report's verdicts only the few that speak of what is open.
    SELECT operation_class, reference, %(families)s::jsonb ->> verdict AS family, verdict,
           operation_id
    FROM reliability_verdict
    WHERE report_id = %(report_id)s
      AND (operation_class, reference) IN (SELECT operation_class, reference FROM known)
),
closing AS (
    SELECT known.id, known.day, known.report_version AS version, agreed.operation_id
    FROM known
    LEFT JOIN said agreed
      ON agreed.operation_class = known.operation_class AND agreed.reference = known.reference
     AND agreed.verdict IN ('matched', 'matched_timing', 'matched_tolerance')
    WHERE ((agreed.verdict IS NOT NULL AND known.family <> 'duplicate')
           OR (known.last_day = known.day AND NOT %(withheld)s))
      AND NOT EXISTS (
          SELECT FROM said
          WHERE said.operation_class = known.operation_class
            AND said.reference = known.reference AND said.family = known.family)
)
UPDATE reliability_discrepancy known
SET status = CASE WHEN known.status = 'recovering' THEN 'recovered' ELSE 'resolved' END,
    resolution = 'automatic', closed_at = %(now)s, closed_by = 'the compare',
    closed_reason = CASE
        WHEN claimed.id IS NULL THEN
            format('version %%s of %%s shows it no longer', closing.version, closing.day)
        ELSE format('matched on %%s, version %%s: event %%s was accepted %%s UTC', closing.day,
                    closing.version, claimed.key,
                    to_char(claimed.claimed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
        END,
    version = known.version + 1
FROM closing
LEFT JOIN reliability_operation operation ON operation.id = closing.operation_id
LEFT JOIN reliability_processedkey claimed ON claimed.id = operation.key_id
WHERE known.id = closing.id
RETURNING known.id, known.status
