-- Count and digest the letters a redrive is about to requeue, for the audit trail.
--
--   redrive_id
--
-- -> letters, digest: SHA-256 over their public ids, sorted, one a line. No locks.

SELECT count(*)::int AS letters,
       encode(sha256(convert_to(coalesce(string_agg(letter.public_id::text, E'\n'
           ORDER BY letter.public_id::text COLLATE "C"), ''), 'UTF8')), 'hex') AS digest
FROM reliability_redrivemember member
JOIN reliability_deadletter letter ON letter.id = member.letter_id
WHERE member.redrive_id = %(redrive_id)s AND member.outcome = 'pending'
