-- Find the keys whose bodies hold a text, within a stretch of the table.
--
--   tenant_id
--   first, last    ids of bodies
--   needles        bytea[]: the text in each form it may be written in
--
-- -> key_id of each. No locks.

SELECT DISTINCT key_id
FROM reliability_body
WHERE id BETWEEN %(first)s AND %(last)s AND tenant_id = %(tenant_id)s
  AND EXISTS (SELECT FROM unnest(%(needles)s::bytea[]) needle WHERE position(needle IN raw) > 0)
