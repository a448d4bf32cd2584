INSERT INTO bare_verdict
    (tenant_id, report_id, line_id, operation_id, verdict, cause, operation_class, reference,
     their_minor, our_minor, currency, exponent)
SELECT 1, 1, line.id, operation.id,
       CASE WHEN operation.id IS NULL THEN 'missing'
            WHEN line.id IS NULL THEN 'unexpected'
            WHEN line.amount_minor <> operation.amount_minor THEN 'amount_mismatch'
            ELSE 'matched' END,
       '', 'charge', coalesce(line.reference, operation.reference), line.amount_minor,
       operation.amount_minor, 'EUR', 2
FROM bare_line line
FULL JOIN reliability_operation operation
  ON operation.operation_class = line.operation_class AND operation.reference = line.reference
