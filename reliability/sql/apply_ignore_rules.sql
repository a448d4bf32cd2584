-- Take off the open list what a report found and a rule in force says nobody needs to look at.
--
--   report_id
--   now
--
-- -> id and status of each. Locks those rows.

UPDATE reliability_discrepancy known
SET status = 'ignored', rule_id = rule.id, ignored_until = rule.until, closed_at = %(now)s,
    closed_by = 'rule', closed_reason = rule.name, version = known.version + 1
FROM reliability_ignorerule rule
WHERE known.report_id = %(report_id)s AND known.status = 'open'
  AND rule.source_id = known.source_id AND rule.ended_at IS NULL
  AND rule.until >= known.last_day
  AND rule.family = known.family AND rule.operation_class = known.operation_class
  AND starts_with(known.reference, rule.starts_with)
  AND (rule.amount_minor_max IS NULL
       OR (rule.currency = known.currency AND rule.amount_minor_max
           >= abs(coalesce(known.their_minor, 0) - coalesce(known.our_minor, 0))))
RETURNING known.id, known.status
