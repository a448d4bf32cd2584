-- Compare what a statement and our side tell in groups (a payout, a batch): one item on one side
-- against many on the other, by their sum. Beside compare_day.sql, for the classes it leaves out.
--
--   report_id, tenant_id, source_id, statement_id, scope, day, zone, starts, ends, carried, as_of,
--   withheld   as in compare_day.sql
--
-- -> Bucket, as there. Each line and each operation gets one verdict, all of a group the same where
--    both sides know it; many against many is ambiguous. The sums of a group stand in its first
--    row, and a line and an operation share that row. No locks.
--
-- A line's reference is its group; an operation's group is its batch, or its own reference.

WITH scope AS (
    SELECT * FROM jsonb_to_recordset(%(scope)s) AS declared(
        operation_class text, sign int, grace interval, tolerance_minor bigint, grouped boolean)
    WHERE grouped
),
line AS MATERIALIZED (
    SELECT line.id, operation_class, line.reference AS name, line.amount_minor AS minor,
           line.currency, line.exponent, line.occurred_at AS at, line.position,
           coalesce(line.occurred_day, (line.occurred_at AT TIME ZONE %(zone)s)::date,
                    %(day)s::date) AS local_day
    FROM reliability_statementline line JOIN scope USING (operation_class)
    WHERE line.statement_id = %(statement_id)s
),
listed AS (SELECT DISTINCT operation_class, name FROM line WHERE name IS NOT NULL),
chosen AS (
    SELECT operation.id FROM reliability_operation operation JOIN scope USING (operation_class)
    WHERE operation.tenant_id = %(tenant_id)s AND operation.source_id = %(source_id)s
      AND operation.occurred_at >= %(carried)s AND operation.occurred_at < %(ends)s
    UNION
    SELECT operation.id FROM listed JOIN reliability_operation operation
      ON operation.tenant_id = %(tenant_id)s AND operation.source_id = %(source_id)s
     AND operation.operation_class = listed.operation_class AND operation.reference = listed.name
     AND operation.batch IS NULL
    UNION
    SELECT operation.id FROM listed JOIN reliability_operation operation
      ON operation.source_id = %(source_id)s AND operation.batch = listed.name
     AND operation.operation_class = listed.operation_class
),
our AS MATERIALIZED (
    SELECT operation.id, operation_class, coalesce(operation.batch, operation.reference) AS name,
           operation.amount_minor * scope.sign AS minor, operation.currency, operation.exponent,
           operation.occurred_at AS at,
           (operation.occurred_at AT TIME ZONE %(zone)s)::date AS local_day, standing,
           array_position(
               ARRAY['', 'received_unprocessed', 'retrying', 'in_dead_letter', 'discarded'],
               standing) AS severity
    FROM chosen
    JOIN reliability_operation operation USING (id)
    JOIN scope USING (operation_class)
    LEFT JOIN reliability_job job ON job.key_id = operation.key_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN job.state IN ('done', 'resolved') THEN ''
                    WHEN job.state = 'dead' THEN 'in_dead_letter'
                    WHEN job.state = 'discarded' THEN 'discarded'
                    WHEN job.starts - job.releases > (job.state = 'running')::int THEN 'retrying'
                    ELSE 'received_unprocessed' END AS standing
    ) stands
),
theirs AS (
    SELECT operation_class, name, count(*) AS lines, sum(minor) AS minor,
           min(currency) AS currency_min, max(currency) AS currency_max,
           min(exponent) AS exponent_min, max(exponent) AS exponent_max,
           array_agg(DISTINCT local_day) AS days, (array_agg(at ORDER BY position))[1] AS at
    FROM line WHERE name IS NOT NULL GROUP BY operation_class, name
),
ours AS (
    SELECT operation_class, name, count(*) AS operations,
           -- What an event did not say cannot differ.
           CASE WHEN NOT bool_or(minor IS NULL) THEN sum(minor) END AS minor,
           min(currency) AS currency_min, max(currency) AS currency_max,
           min(exponent) AS exponent_min, max(exponent) AS exponent_max,
           array_agg(DISTINCT local_day) AS days, max(severity) AS severity,
           (array_agg(standing ORDER BY severity DESC))[1] AS standing,
           bool_or(at >= %(starts)s AND at < %(ends)s) AS of_the_day
    FROM our GROUP BY operation_class, name
),
met AS (
    SELECT operation_class, name, lines, operations, ours.standing, theirs.at,
           theirs.minor - ours.minor AS off, theirs.days <> ours.days AS other_days,
           least(theirs.currency_min, ours.currency_min)
               <> greatest(theirs.currency_max, ours.currency_max) AS other_currency,
           least(theirs.exponent_min, ours.exponent_min)
               <> greatest(theirs.exponent_max, ours.exponent_max) AS other_exponent,
           -- Which other day lists it is asked only where that can change the verdict.
           CASE WHEN lines IS NULL OR NOT of_the_day THEN (
               SELECT min(report.day)
               FROM reliability_statementline other
               JOIN reliability_report report
                 ON report.statement_id = other.statement_id AND report.current
               WHERE other.reference = name
                 AND other.operation_class
                     = coalesce(theirs.operation_class, ours.operation_class)
                 AND report.source_id = %(source_id)s AND report.day <> %(day)s
           ) END AS listed_on
    FROM theirs FULL JOIN ours USING (operation_class, name)
),
judged AS (
    SELECT met.*, grace,
           CASE WHEN lines IS NULL OR operations IS NULL THEN NULL
                WHEN listed_on < %(day)s THEN 'duplicate_theirs'
                WHEN lines > 1 AND operations > 1 THEN 'ambiguous'
                WHEN standing <> '' THEN
                    CASE WHEN coalesce(at, %(ends)s) + grace > %(as_of)s THEN 'early'
                         WHEN %(withheld)s THEN 'not_comparable'
                         ELSE 'missing' END
                WHEN other_currency THEN 'currency_mismatch'
                WHEN other_exponent OR abs(off) > tolerance_minor THEN 'amount_mismatch'
                WHEN off <> 0 THEN 'matched_tolerance'
                WHEN other_days THEN 'matched_timing'
                ELSE 'matched' END AS shared
    FROM met JOIN scope USING (operation_class)
),
member AS (
    SELECT operation_class, name, n, line.id AS line_id, our.id AS operation_id,
           line.at AS their_at, our.at AS our_at, line.minor AS their_minor,
           our.minor AS signed_minor, coalesce(our.standing, '') AS own_standing,
           line.currency AS their_currency, line.exponent AS their_exponent,
           our.currency AS our_currency, our.exponent AS our_exponent
    FROM (
        SELECT *, row_number() OVER (PARTITION BY operation_class, name ORDER BY position) AS n
        FROM line WHERE name IS NOT NULL
    ) line
    FULL JOIN (
        -- What is ambiguous shares no row; the worst of a group comes first, with its job.
        SELECT our.*, row_number() OVER (
                   PARTITION BY operation_class, name ORDER BY severity DESC, our.id)
               + CASE WHEN shared = 'ambiguous' THEN lines ELSE 0 END AS n
        FROM our JOIN judged USING (operation_class, name)
        WHERE shared IS DISTINCT FROM 'duplicate_theirs'
    ) our USING (operation_class, name, n)
),
said AS (
    SELECT member.*, judged.standing, other_exponent, operations,
           coalesce(shared, CASE
               WHEN operation_id IS NULL THEN
                   CASE WHEN coalesce(their_at, %(ends)s) + grace > %(as_of)s THEN 'early'
                        WHEN %(withheld)s THEN 'not_comparable'
                        ELSE 'missing' END
               WHEN own_standing = 'discarded' THEN 'out_of_scope'
               WHEN our_at + grace >= %(ends)s OR listed_on > %(day)s THEN 'in_transit'
               WHEN %(withheld)s THEN 'not_comparable'
               ELSE 'unexpected' END) AS verdict
    FROM member JOIN judged USING (operation_class, name)
    WHERE lines IS NOT NULL OR listed_on IS NULL OR listed_on > %(day)s
),
caused AS (
    SELECT said.*, coalesce(their_currency, our_currency) AS currency,
           coalesce(their_exponent, our_exponent) AS exponent,
           CASE WHEN own_standing = '' AND operation_id IS NOT NULL
               THEN coalesce(signed_minor, their_minor) END AS our_minor,
           CASE WHEN verdict = 'not_comparable' THEN 'withheld'
                WHEN verdict = 'missing' THEN coalesce(standing, 'never_received')
                WHEN verdict IN ('unexpected', 'out_of_scope') THEN own_standing
                WHEN verdict = 'amount_mismatch' AND other_exponent THEN 'exponent'
                ELSE '' END AS cause
    FROM said
),
summed AS (
    SELECT caused.*, row_number() OVER (told ORDER BY n) AS nth,
           sum(their_minor) OVER told AS their_sum,
           CASE WHEN bool_or(operation_id IS NOT NULL AND signed_minor IS NULL) OVER told
               THEN sum(their_minor) OVER told ELSE sum(our_minor) OVER told END AS our_sum,
           min(least(their_currency, our_currency)) OVER told
               = max(greatest(their_currency, our_currency)) OVER told
           AND min(least(their_exponent, our_exponent)) OVER told
               = max(greatest(their_exponent, our_exponent)) OVER told AS one_unit
    FROM caused
    WINDOW told AS (PARTITION BY operation_class, name, verdict, cause)
),
told AS MATERIALIZED (
    SELECT line_id, operation_id, verdict, cause, operation_class, name AS reference,
           CASE WHEN NOT one_unit THEN their_minor WHEN nth = 1 THEN their_sum END::bigint
               AS their_minor,
           CASE WHEN NOT one_unit THEN our_minor WHEN nth = 1 THEN our_sum END::bigint
               AS our_minor,
           currency, exponent,
           CASE WHEN (our_currency, our_exponent) <> (their_currency, their_exponent)
               THEN our_currency END AS our_currency,
           CASE WHEN (our_currency, our_exponent) <> (their_currency, their_exponent)
               THEN our_exponent END AS our_exponent,
           own_standing AS standing, n
    FROM summed
    UNION ALL
    SELECT id, NULL, 'not_comparable', 'no_key', operation_class, NULL, minor, NULL, currency,
           exponent, NULL, NULL, '', 0
    FROM line WHERE name IS NULL
),
stored AS (
    INSERT INTO reliability_verdict
        (tenant_id, report_id, line_id, operation_id, verdict, cause, operation_class, reference,
         their_minor, our_minor, currency, exponent, our_currency, our_exponent)
    SELECT %(tenant_id)s, %(report_id)s, line_id, operation_id, verdict, cause, operation_class,
           reference, their_minor, our_minor, currency, exponent, our_currency, our_exponent
    FROM told ORDER BY reference, n
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
