-- Add refused requests to the counter of their source, reason and hour.
--
--   one parameter a column
--
-- -> the counter's id. Locks that one row.

INSERT INTO reliability_refusal
    (tenant_id, source_id, reason, hour, count, last_at, last_size_bytes, last_sha256, last_peer)
VALUES (%(tenant_id)s, %(source_id)s, %(reason)s, %(hour)s, %(count)s, %(last_at)s,
        %(last_size_bytes)s, %(last_sha256)s, %(last_peer)s)
ON CONFLICT (source_id, reason, hour) DO UPDATE SET
    count = reliability_refusal.count + excluded.count,
    last_at = excluded.last_at,
    last_size_bytes = excluded.last_size_bytes,
    last_sha256 = excluded.last_sha256,
    last_peer = excluded.last_peer
RETURNING id
