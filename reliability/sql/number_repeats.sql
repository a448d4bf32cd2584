-- Number the lines of one statement that say the same under one identity: two equal rows are two.
--
--   statement_id
--
-- -> id of every line that is not the first of its identity. Locks those lines; the unique
--    constraint is deferred, so it looks at the result.

WITH repeated AS (
    SELECT identity
    FROM reliability_statementline
    WHERE statement_id = %(statement_id)s
    GROUP BY identity
    HAVING count(*) > 1
),
numbered AS (
    SELECT line.id, row_number() OVER (PARTITION BY identity ORDER BY position, line.id) AS nth
    FROM reliability_statementline line JOIN repeated USING (identity)
    WHERE line.statement_id = %(statement_id)s
)
UPDATE reliability_statementline line
SET identity = line.identity || '#' || nth
FROM numbered
WHERE numbered.id = line.id AND nth > 1
RETURNING line.id
