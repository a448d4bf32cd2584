-- Look whether the unique constraint that makes a key claimed once stands and is valid.
--
-- -> stands: false where it is missing, was left invalid by a failed build, or is not unique

SELECT EXISTS (
    SELECT FROM pg_constraint c JOIN pg_index i ON i.indexrelid = c.conindid
    WHERE c.conname = 'one_claim_per_key' AND c.contype = 'u'
      AND c.conrelid = 'reliability_processedkey'::regclass
      AND i.indisunique AND i.indisvalid AND i.indisready) AS stands
