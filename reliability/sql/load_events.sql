-- Read what handlers are given, for leased jobs.
--
--   ids
--
-- -> Loaded: one row per job. No locks.

SELECT job.id, tenant.slug AS tenant, source.slug AS source, source.internal, known.key,
       known.downstream_key, known.occurred_at, known.asked_by, body.raw,
       coalesce(body.headers, '{}') AS headers, known.unconfirmed
FROM reliability_job job
JOIN reliability_processedkey known ON known.id = job.key_id
JOIN reliability_source source ON source.id = job.source_id
JOIN reliability_tenant tenant ON tenant.id = job.tenant_id
LEFT JOIN reliability_body body ON body.key_id = job.key_id AND body.first
WHERE job.id = ANY(%(ids)s)
