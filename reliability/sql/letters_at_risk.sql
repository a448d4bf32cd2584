-- Count letters and their money by unit; refunds apart, absolute.
--
-- Positional: the parameters of the chosen ones, a bounded query of currency, exponent and
-- amount_minor that risk.py puts in.
--
-- -> currency, exponent, letters, came_minor, back_minor. Reads without locks.

SELECT currency, exponent, count(*) AS letters,
       sum(amount_minor) FILTER (WHERE amount_minor >= 0) AS came_minor,
       sum(abs(amount_minor)) FILTER (WHERE amount_minor < 0) AS back_minor
FROM ({chosen}) letter
GROUP BY currency, exponent
ORDER BY currency, exponent
