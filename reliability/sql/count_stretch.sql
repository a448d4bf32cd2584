-- Count the accepted keys of one stretch with their jobs, by source, in one snapshot.
--
--   number       of the stretch
--   first, last  the ids of its keys
--   now
--
-- -> one row per source: accepted. Reads keys and jobs without locks; the later of two counts at
-- once stands.

INSERT INTO reliability_stretch
    (tenant_id, source_id, number, accepted, purged, ready, running, done, dead, discarded,
     resolved, counted_at)
SELECT known.tenant_id, known.source_id, %(number)s, count(*), count(known.purged_at),
       count(*) FILTER (WHERE job.state = 'ready'),
       count(*) FILTER (WHERE job.state = 'running'),
       count(*) FILTER (WHERE job.state = 'done'),
       count(*) FILTER (WHERE job.state = 'dead'),
       count(*) FILTER (WHERE job.state = 'discarded'),
       count(*) FILTER (WHERE job.state = 'resolved'),
       %(now)s
FROM reliability_processedkey known
LEFT JOIN reliability_job job ON job.key_id = known.id
WHERE known.id BETWEEN %(first)s AND %(last)s AND NOT known.absorbed
GROUP BY known.tenant_id, known.source_id
ON CONFLICT (number, source_id) DO UPDATE SET
    accepted = excluded.accepted, purged = excluded.purged, ready = excluded.ready,
    running = excluded.running, done = excluded.done, dead = excluded.dead,
    discarded = excluded.discarded, resolved = excluded.resolved, counted_at = excluded.counted_at
RETURNING accepted
