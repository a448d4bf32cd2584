-- What two versions of one day's report say differently of an operation.
--
--   old_id, new_id   the reports
--   limit            at most so many rows
--
-- -> Said: class, reference, whether the newer version says it, verdict, cause, both amounts.
--    No locks.

WITH old AS (
    SELECT operation_class, reference, verdict, cause, their_minor, our_minor, currency, exponent
    FROM reliability_verdict WHERE report_id = %(old_id)s
),
new AS (
    SELECT operation_class, reference, verdict, cause, their_minor, our_minor, currency, exponent
    FROM reliability_verdict WHERE report_id = %(new_id)s
)
SELECT false AS newer, gone.* FROM (SELECT * FROM old EXCEPT ALL SELECT * FROM new) gone
UNION ALL
SELECT true, come.* FROM (SELECT * FROM new EXCEPT ALL SELECT * FROM old) come
ORDER BY operation_class, reference, newer, verdict
LIMIT %(limit)s
