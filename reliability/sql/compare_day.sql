-- Compare one statement with our operations of its day: exactly one verdict for each line and each
-- operation, stored under a report that is yet to be written.
--
--   report_id, tenant_id, source_id, statement_id
--   scope           jsonb array: operation_class, sign, grace (interval), tolerance_minor, and
--                   grouped where it is: those are left to compare_groups.sql
--   day, zone       the local day and its IANA zone
--   starts, ends    its instants; carried: from when on operations of ours are looked at, earlier
--                   than starts where the day before left some in transit
--   as_of           when we compare
--   withheld        nothing may be called missing or unexpected
--
-- -> Bucket: per verdict, cause and currencies the items and both sides' signed sums, and a digest
--    of what was compared that does not depend on order. No locks.
--
-- The same rules, one by one, are in reconcile/compare.py. An operation that another day's statement
-- lists belongs to that day: one listed before is not looked at again, one listed later was in transit.

WITH scope AS (
    SELECT * FROM jsonb_to_recordset(%(scope)s) AS declared(
        operation_class text, sign int, grace interval, tolerance_minor bigint, grouped boolean)
),
line AS (
    SELECT line.id, operation_class, line.reference, line.amount_minor, line.currency,
           line.exponent, line.occurred_at, line.occurred_day,
           scope.sign IS NOT NULL AS in_scope,
           row_number() OVER (PARTITION BY operation_class, line.reference ORDER BY line.position)
               AS nth
    FROM reliability_statementline line LEFT JOIN scope USING (operation_class)
    WHERE line.statement_id = %(statement_id)s AND grouped IS NOT TRUE
),
our AS (
    SELECT operation.id, operation_class, operation.reference, operation.amount_minor,
           operation.currency, operation.exponent, operation.occurred_at, operation.key_id
    FROM reliability_operation operation JOIN scope USING (operation_class)
    WHERE grouped IS NOT TRUE
      AND operation.tenant_id = %(tenant_id)s AND operation.source_id = %(source_id)s
      AND operation.occurred_at >= %(carried)s AND operation.occurred_at < %(ends)s
),
met AS (
    SELECT operation_class, reference, line.id AS line_id, line.amount_minor AS their_minor,
           line.currency AS their_currency, line.exponent AS their_exponent,
           line.occurred_at AS their_at, line.occurred_day AS their_day,
           coalesce(our.id, far.id) AS operation_id,
           coalesce(our.amount_minor, far.amount_minor) AS our_amount,
           coalesce(our.currency, far.currency) AS our_currency,
           coalesce(our.exponent, far.exponent) AS our_exponent,
           coalesce(our.occurred_at, far.occurred_at) AS our_at,
           coalesce(our.key_id, far.key_id) AS key_id
    FROM (SELECT * FROM line WHERE in_scope AND reference IS NOT NULL AND nth = 1) line
    FULL JOIN our USING (operation_class, reference)
    LEFT JOIN LATERAL (
        SELECT operation.id, operation.amount_minor, operation.currency, operation.exponent,
               operation.occurred_at, operation.key_id
        FROM reliability_operation operation
        WHERE our.id IS NULL AND operation.tenant_id = %(tenant_id)s
          AND operation.source_id = %(source_id)s
          AND operation.operation_class = line.operation_class
          AND operation.reference = line.reference
        -- One at most; said so that it is looked up where ours is wanting, not joined for all.
        LIMIT 1
    ) far ON true
),
known AS (
    SELECT met.*, scope.grace, scope.tolerance_minor, met.our_amount * scope.sign AS signed_minor,
           CASE WHEN job.state IN ('done', 'resolved') THEN ''
                WHEN job.state = 'dead' THEN 'in_dead_letter'
                WHEN job.state = 'discarded' THEN 'discarded'
                WHEN job.starts - job.releases > (job.state = 'running')::int THEN 'retrying'
                ELSE 'received_unprocessed' END AS standing,
           -- Which other day lists it is asked only where that can change the verdict.
           CASE WHEN line_id IS NULL OR our_at < %(starts)s OR our_at >= %(ends)s THEN (
               SELECT min(report.day)
               FROM reliability_statementline other
               JOIN reliability_report report
                 ON report.statement_id = other.statement_id AND report.current
               WHERE other.reference = met.reference
                 AND other.operation_class = met.operation_class
                 AND report.source_id = %(source_id)s AND report.day <> %(day)s
           ) END AS listed_on
    FROM met
    JOIN scope USING (operation_class)
    LEFT JOIN reliability_job job ON job.key_id = met.key_id
),
judged AS (
    SELECT known.*, verdict.*
    FROM known
    CROSS JOIN LATERAL (
        SELECT CASE WHEN coalesce(their_at, %(ends)s) + grace > %(as_of)s THEN 'early'
                    WHEN %(withheld)s THEN 'not_comparable'
                    ELSE 'missing' END AS alone
    ) line
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN operation_id IS NULL THEN alone
            WHEN line_id IS NULL THEN
                CASE WHEN standing = 'discarded' THEN 'out_of_scope'
                     WHEN our_at + grace >= %(ends)s OR listed_on > %(day)s THEN 'in_transit'
                     WHEN %(withheld)s THEN 'not_comparable'
                     ELSE 'unexpected' END
            WHEN listed_on < %(day)s THEN 'duplicate_theirs'
            WHEN standing <> '' THEN alone
            WHEN our_currency <> their_currency THEN 'currency_mismatch'
            WHEN our_exponent <> their_exponent THEN 'amount_mismatch'
            WHEN abs(their_minor - signed_minor) > tolerance_minor THEN 'amount_mismatch'
            WHEN their_minor <> signed_minor THEN 'matched_tolerance'
            -- Instants within the day are of the day; only others are worth the zone's reckoning.
            WHEN their_day IS NULL AND coalesce(their_at, %(starts)s) >= %(starts)s
                 AND coalesce(their_at, %(starts)s) < %(ends)s
                 AND our_at >= %(starts)s AND our_at < %(ends)s THEN 'matched'
            WHEN coalesce(their_day, (their_at AT TIME ZONE %(zone)s)::date, %(day)s::date)
                 <> (our_at AT TIME ZONE %(zone)s)::date THEN 'matched_timing'
            ELSE 'matched' END AS verdict
        -- Judged once, not at each mention of the verdict further down.
        OFFSET 0
    ) verdict
    WHERE line_id IS NOT NULL OR listed_on IS NULL OR listed_on > %(day)s
),
told AS MATERIALIZED (
    SELECT line_id, CASE WHEN verdict <> 'duplicate_theirs' THEN operation_id END AS operation_id,
           verdict,
           CASE WHEN verdict = 'not_comparable' THEN 'withheld'
                WHEN verdict = 'missing' AND operation_id IS NULL THEN 'never_received'
                WHEN verdict IN ('missing', 'unexpected', 'out_of_scope') THEN standing
                WHEN verdict = 'amount_mismatch' AND our_exponent <> their_exponent
                    THEN 'exponent'
                ELSE '' END AS cause,
           operation_class, reference, their_minor,
           CASE WHEN verdict <> 'duplicate_theirs' AND standing = '' AND operation_id IS NOT NULL
               THEN coalesce(signed_minor, their_minor) END AS our_minor,
           coalesce(their_currency, our_currency) AS currency,
           coalesce(their_exponent, our_exponent) AS exponent,
           CASE WHEN (our_currency, our_exponent) <> (their_currency, their_exponent)
               THEN our_currency END AS our_currency,
           CASE WHEN (our_currency, our_exponent) <> (their_currency, their_exponent)
               THEN our_exponent END AS our_exponent,
           standing
    FROM judged
    UNION ALL
    SELECT id, NULL, CASE WHEN NOT in_scope THEN 'out_of_scope'
                          WHEN reference IS NULL THEN 'not_comparable'
                          ELSE 'duplicate_theirs' END,
           CASE WHEN in_scope AND reference IS NULL THEN 'no_key' ELSE '' END,
           operation_class, reference, amount_minor, NULL, currency, exponent, NULL, NULL, ''
    FROM line
    WHERE NOT in_scope OR reference IS NULL OR nth > 1
),
stored AS (
    INSERT INTO reliability_verdict
        (tenant_id, report_id, line_id, operation_id, verdict, cause, operation_class, reference,
         their_minor, our_minor, currency, exponent, our_currency, our_exponent)
    SELECT %(tenant_id)s, %(report_id)s, line_id, operation_id, verdict, cause, operation_class,
           reference, their_minor, our_minor, currency, exponent, our_currency, our_exponent
    FROM told
)
SELECT verdict, cause, currency, exponent, our_currency, our_exponent, count(*) AS items,
       coalesce(sum(their_minor), 0)::bigint AS their_minor,
       coalesce(sum(our_minor), 0)::bigint AS our_minor,
       sum(hashtextextended(
           concat_ws('|', line_id, operation_id, verdict, cause, their_minor, our_minor, standing),
           0))::text AS digest
FROM told
GROUP BY verdict, cause, currency, exponent, our_currency, our_exponent
ORDER BY verdict, cause, currency, exponent, our_currency, our_exponent
