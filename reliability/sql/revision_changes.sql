-- How two revisions of a day's statement differ, line by line.
--
--   old_id, new_id   the statements
--   limit            at most so many
--
-- -> Changed: identity, reference, and each side's amount, currency and position; a side that has no
--    such line is NULL. No locks.

SELECT coalesce(old.identity, new.identity) AS identity,
       coalesce(new.reference, old.reference) AS reference,
       old.amount_minor AS old_minor, old.currency AS old_currency,
       old.exponent AS old_exponent, new.amount_minor AS new_minor,
       new.currency AS new_currency, new.exponent AS new_exponent
FROM (SELECT * FROM reliability_statementline WHERE statement_id = %(old_id)s) old
FULL JOIN (SELECT * FROM reliability_statementline WHERE statement_id = %(new_id)s) new
  USING (identity)
WHERE old.id IS NULL OR new.id IS NULL
   OR (old.amount_minor, old.currency, old.exponent, old.reference, old.kind, old.occurred_at,
       old.status)
      IS DISTINCT FROM
      (new.amount_minor, new.currency, new.exponent, new.reference, new.kind, new.occurred_at,
       new.status)
ORDER BY coalesce(new.position, old.position)
LIMIT %(limit)s
