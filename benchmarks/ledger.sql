-- A ledger as it stands after a long time: keys, jobs, attempts, bodies, receipts, letters.
--
-- Formatted, not bound: {first} and {last} number the events, one in {ratio} is an open letter,
-- {tenant} owns them, {source} is the first of {sources} sources. Newer events have higher numbers.

CREATE TEMP TABLE event ON COMMIT DROP AS
SELECT n, {source} + n / {ratio} / 4 % {sources} AS source_id, n % {ratio} = 0 AS dead, n / {ratio} AS l,
       (ARRAY['bench.local', 'bench.local', 'bench.outside', 'stripe.charge.failed'])
           [1 + n / {ratio} % 4] AS kind,
       now() - ({events} - n) * (interval '30 days' / {events}) AS at
FROM generate_series({first}, {last}) n;

INSERT INTO reliability_processedkey
    (id, tenant_id, source_id, key, kind, downstream_key, amount_minor, currency, exponent,
     body_sha256, claimed_at)
SELECT n, {tenant}, source_id, 'evt_' || n, kind, 'ik_' || n, 100 + n % 90000,
       CASE WHEN n % 7 = 0 THEN 'USD' ELSE 'EUR' END, 2, sha256('{{}}'), at
FROM event;

INSERT INTO reliability_body (id, tenant_id, key_id, raw, sha256, headers, created_at)
SELECT n, {tenant}, n, convert_to('{{"data": {{"object": {{"amount": ' || n || '}}}}}}', 'UTF8'),
       sha256(n::text::bytea), '{{}}', at
FROM event;

INSERT INTO reliability_delivery
    (id, tenant_id, source_id, received_at, size_bytes, sha256, answer, scheme)
SELECT n, {tenant}, source_id, at, 200, sha256('{{}}'), 200, 'stripe' FROM event;

INSERT INTO reliability_receipt (id, tenant_id, source_id, key_id, delivery_id, verdict, at)
SELECT n, {tenant}, source_id, n, n, CASE WHEN n % 50 = 1 THEN 'duplicate' ELSE 'accepted' END, at
FROM event;

INSERT INTO reliability_job
    (id, tenant_id, source_id, key_id, kind, queue, state, run_at, starts, created_at, ended_at)
SELECT n, {tenant}, source_id, n, kind,
       CASE kind WHEN 'bench.local' THEN 'local' ELSE 'outside' END,
       CASE WHEN dead THEN 'dead' ELSE 'done' END, at, CASE WHEN dead THEN 5 ELSE 1 END, at,
       at + interval '1 second'
FROM event;

INSERT INTO reliability_attempt
    (tenant_id, job_id, round, number, token, outcome, error_type, message, started_at, ended_at)
SELECT {tenant}, n, 1, number, n, CASE WHEN dead THEN 'failed' ELSE 'done' END,
       CASE WHEN dead THEN 'LedgerDown' ELSE '' END, '', at, at + interval '1 second'
FROM event, generate_series(1, CASE WHEN dead THEN 5 ELSE 1 END) number;

INSERT INTO reliability_deadletter
    (id, tenant_id, source_id, job_id, round, kind, outcome, reason, error_type, message,
     fingerprint, amount_minor, currency, exponent, buried_at)
SELECT l, {tenant}, source_id, n, 1, kind,
       CASE WHEN l % 20 = 0 THEN 'unknown' ELSE 'failed' END, '5 of 5 attempts failed',
       'Error' || l % 12,
       CASE WHEN l % 40000 = 7 THEN 'refused: period_locked in NL-02'
            ELSE 'no answer from ledger-' || l % 97 || ' within 5 s for booking ' || md5(l::text) END,
       'Error' || l % 12 || ': ' || l % 60, 100 + n % 90000,
       CASE WHEN n % 7 = 0 THEN 'USD' ELSE 'EUR' END, 2, at + interval '1 second'
FROM event WHERE dead;
