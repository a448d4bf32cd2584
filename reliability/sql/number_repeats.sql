-- Number the lines of one statement that say the same under one identity: two equal rows are two.
--
--   statement_id
--
-- -> id of every line that is not the first of its identity. Locks those lines; the unique
--    constraint is deferred, so it looks at the result.

-- The inner array is worked out once; joined, a planner without statistics may do it per line.

WITH numbered AS (
    SELECT id, row_number() OVER (PARTITION BY identity ORDER BY position, id) AS nth
    FROM reliability_statementline
    WHERE statement_id = %(statement_id)s AND identity = ANY(ARRAY(
        SELECT identity
        FROM reliability_statementline
        WHERE statement_id = %(statement_id)s
        GROUP BY identity
        HAVING count(*) > 1))
)
UPDATE reliability_statementline line
SET identity = line.identity || '#' || nth
FROM numbered
WHERE numbered.id = line.id AND nth > 1
RETURNING line.id
