-- Draw the id of a report before it is written, so that its verdicts can name it.
--
-- -> id. No locks.

SELECT nextval(pg_get_serial_sequence('reliability_report', 'id')) AS id
