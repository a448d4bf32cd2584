INSERT INTO reliability_processedkey
    (tenant_id, source_id, key, kind, downstream_key, operation_class, operation_reference,
     amount_minor, currency, exponent, occurred_at, body_sha256, claimed_at)
SELECT %(t)s, %(s)s, 'evt_' || reference, 'stripe.charge.succeeded', reference, 'charge', reference,
       minor, currency, 2, at AT TIME ZONE 'UTC', '\x00', at AT TIME ZONE 'UTC'
FROM our;

INSERT INTO reliability_operation
    (tenant_id, source_id, operation_class, reference, key_id, amount_minor, currency, exponent,
     occurred_at)
SELECT tenant_id, source_id, 'charge', operation_reference, id, amount_minor, currency, exponent,
       occurred_at
FROM reliability_processedkey
WHERE source_id = %(s)s AND tenant_id = %(t)s;

INSERT INTO reliability_job
    (tenant_id, source_id, key_id, kind, queue, state, run_at, created_at, ended_at, starts)
SELECT tenant_id, source_id, id, kind, 'outside', 'done', claimed_at, claimed_at, claimed_at, 1
FROM reliability_processedkey
WHERE source_id = %(s)s AND tenant_id = %(t)s;

ANALYZE
