-- Find the internal source whose keys are a tenant's jobs of one kind.
--
--   tenant_id   bigint, or NULL where the tenant is given by name
--   tenant      its slug, or NULL
--   slug        the source's
--
-- -> OwnSource, if it is there already. No locks.

SELECT id AS pk, tenant_id
FROM reliability_source
WHERE tenant_id = coalesce(%(tenant_id)s::bigint,
                           (SELECT id FROM reliability_tenant WHERE slug = %(tenant)s))
  AND slug = %(slug)s
