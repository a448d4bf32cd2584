-- Open a discrepancy for each disagreement of a report, or carry the one that is there.
--
--   report_id
--   families     jsonb object: verdict to family
--   limits       jsonb object: currency to the minor units one person may recover alone
--   alone_max    the same in major units, for currencies without a limit of their own
--   now
--
-- -> Carried: id, and whether it had been closed before and is open again. Locks those rows.
--
-- A closed one opens again where this report contradicts it; one that a person settled only where
-- a later day or other figures do. An ignored one stays so until its last day is over.

WITH found AS (
    SELECT DISTINCT ON (verdict.operation_class, verdict.reference, family)
           report.tenant_id, report.source_id, verdict.operation_class, verdict.reference,
           %(families)s::jsonb ->> verdict.verdict AS family, verdict.verdict, verdict.cause,
           verdict.their_minor, verdict.our_minor, verdict.currency, verdict.exponent,
           report.day, report.id AS report_id, verdict.line_id, job.id AS job_id,
           abs(coalesce(verdict.their_minor, 0)) > coalesce(
               (%(limits)s::jsonb ->> verdict.currency)::numeric,
               %(alone_max)s * 10 ^ verdict.exponent) AS needs_two
    FROM reliability_verdict verdict
    JOIN reliability_report report ON report.id = verdict.report_id
    -- Looked up one by one: the disagreements are few, and their number is not known beforehand.
    LEFT JOIN LATERAL (
        SELECT job.id
        FROM reliability_operation operation JOIN reliability_job job USING (key_id)
        WHERE operation.id = verdict.operation_id
        LIMIT 1) job ON true
    WHERE verdict.report_id = %(report_id)s
      AND verdict.verdict = ANY(ARRAY(SELECT jsonb_object_keys(%(families)s::jsonb)))
      AND verdict.reference IS NOT NULL AND verdict.currency IS NOT NULL
    -- The sums of a group stand in its first row.
    ORDER BY verdict.operation_class, verdict.reference, family, verdict.id
),
before AS MATERIALIZED (
    SELECT known.id
    FROM found JOIN reliability_discrepancy known
      USING (source_id, operation_class, reference, family)
    WHERE known.status IN ('recovered', 'resolved', 'ignored')
),
carried AS (
    INSERT INTO reliability_discrepancy AS known
        (tenant_id, source_id, operation_class, reference, family, verdict, cause, status,
         their_minor, our_minor, currency, exponent, first_day, last_day, report_id, line_id,
         job_id, needs_two, version, opened_at, closed_by, closed_reason)
    SELECT tenant_id, source_id, operation_class, reference, family, verdict, cause, 'open',
           their_minor, our_minor, currency, exponent, day, day, report_id, line_id, job_id,
           needs_two, 1, %(now)s, '', ''
    FROM found
    ON CONFLICT (source_id, operation_class, reference, family) DO UPDATE SET
        status = CASE
            WHEN known.status = 'recovering'
                 AND excluded.cause IN ('received_unprocessed', 'retrying') THEN 'recovering'
            WHEN known.status = 'ignored'
                 AND coalesce(known.ignored_until >= excluded.last_day, true) THEN 'ignored'
            WHEN known.status = 'resolved' AND known.resolution = 'by hand'
                 AND excluded.last_day <= known.last_day
                 AND (excluded.verdict, excluded.their_minor, excluded.our_minor)
                     IS NOT DISTINCT FROM (known.verdict, known.their_minor, known.our_minor)
                 THEN 'resolved'
            ELSE 'open' END,
        verdict = excluded.verdict,
        cause = excluded.cause,
        their_minor = excluded.their_minor,
        our_minor = excluded.our_minor,
        currency = excluded.currency,
        exponent = excluded.exponent,
        first_day = least(known.first_day, excluded.first_day),
        last_day = greatest(known.last_day, excluded.last_day),
        report_id = excluded.report_id,
        line_id = coalesce(excluded.line_id, known.line_id),
        job_id = coalesce(excluded.job_id, known.job_id),
        needs_two = CASE WHEN known.status IN ('recovering', 'recovered')
            THEN known.needs_two
            ELSE excluded.needs_two OR known.recover_asked_by <> '' END,
        version = known.version + 1
    RETURNING known.id, known.status
)
-- IN, not a join: it is hashed, and looked up once before more than one row is written.
SELECT id, status = 'open' AND id IN (SELECT id FROM before) AS reopened
FROM carried
