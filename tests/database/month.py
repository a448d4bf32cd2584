"""Tables with some thousand rows, so that the planner has to choose: a month of one source."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from reliability.models import Artefact, Report, Source, Statement

NOW = datetime(2026, 10, 2, tzinfo=UTC)
DAYS, EACH_DAY = 30, 150

KEYS = """
INSERT INTO reliability_processedkey
    (tenant_id, source_id, key, kind, downstream_key, operation_class, operation_reference,
     body_sha256, claimed_at)
SELECT %(tenant)s, %(source)s, 'evt_' || n, 'stripe.charge.succeeded', 'key ' || n, 'charge',
       'ch_' || n, ''::bytea, %(now)s - n * interval '1 day' / %(each_day)s
FROM generate_series(1, %(days)s * %(each_day)s) n
"""
OPERATIONS = """
INSERT INTO reliability_operation
    (tenant_id, source_id, operation_class, reference, key_id, amount_minor, currency, exponent,
     occurred_at)
SELECT tenant_id, source_id, operation_class, operation_reference, id, 100, 'EUR', 2, claimed_at
FROM reliability_processedkey
"""
BODIES = """
INSERT INTO reliability_body (tenant_id, key_id, raw, sha256, headers, created_at)
SELECT tenant_id, id, '{}', sha256('{}'), '{}', claimed_at FROM reliability_processedkey
"""
JOBS = """
INSERT INTO reliability_job
    (tenant_id, source_id, key_id, kind, queue, state, run_at, created_at, crashes, starts,
     lease_expires_at, not_after, ended_at)
SELECT tenant_id, source_id, id, kind, 'outside',
       CASE WHEN id %% 10 < 6 THEN 'done' WHEN id %% 10 < 9 THEN 'ready' ELSE 'running' END,
       claimed_at, claimed_at, (id %% 10 = 8)::int, 1,
       CASE WHEN id %% 10 = 9 THEN %(now)s END,
       CASE WHEN id %% 10 = 7 THEN %(now)s + interval '100 years' END,
       CASE WHEN id %% 10 < 6 THEN claimed_at END
FROM reliability_processedkey
"""
ATTEMPTS = """
INSERT INTO reliability_attempt
    (tenant_id, job_id, round, number, token, outcome, started_at, ended_at)
SELECT tenant_id, id, 1, 1, 1, 'done', run_at, run_at FROM reliability_job WHERE state = 'done'
"""
LINES = """
INSERT INTO reliability_statementline
    (tenant_id, statement_id, position, identity, "references", kind, operation_class, reference,
     amount_minor, currency, exponent, occurred_at, status, raw)
SELECT statement.tenant_id, statement.id, n, n::text, '{}', 'charge', 'charge',
       'ch_' || (%(now)s::date - day) * %(each_day)s + n, 100, 'EUR', 2, day, '', ''
FROM reliability_statement statement, generate_series(1, %(each_day)s) n
"""
VERDICTS = """
INSERT INTO reliability_verdict
    (tenant_id, report_id, line_id, verdict, cause, operation_class, reference, their_minor,
     currency, exponent)
SELECT report.tenant_id, report.id, line.id,
       CASE WHEN position %% 50 = 0 THEN 'missing' ELSE 'matched' END, '', 'charge', reference,
       100, 'EUR', 2
FROM reliability_report report JOIN reliability_statementline line USING (statement_id)
"""


def a_month_of(source: Source) -> tuple[Statement, Report]:
    """Fill the tables and tell the planner; return the newest statement and its report."""
    given: dict[str, Any] = {"tenant": source.tenant_id, "source": source.pk, "now": NOW,
                             "days": DAYS, "each_day": EACH_DAY}  # fmt: skip
    reports = [_report(source, NOW - timedelta(days=n)) for n in range(1, DAYS)]
    with connection.cursor() as cursor:
        for text in (KEYS, OPERATIONS, BODIES, JOBS, ATTEMPTS, LINES, VERDICTS):
            cursor.execute(text, given)
        cursor.execute("ANALYZE")
    newest = reports[0]
    assert newest.statement is not None
    return newest.statement, newest


def _report(source: Source, starts_at: datetime) -> Report:
    scope: dict[str, Any] = {"tenant_id": source.tenant_id, "source": source}
    artefact = Artefact.objects.create(
        **scope, sha256=starts_at.isoformat().encode(), size_bytes=1, name="day.csv",
        received_at=NOW, received_by="ola",
    )  # fmt: skip
    statement = Statement.objects.create(
        **scope, artefact=artefact, day=starts_at.date(), created_at=NOW,
        statement_format="stripe-balance-csv",
    )  # fmt: skip
    return Report.objects.create(
        **scope, day=starts_at.date(), version=1, statement=statement, starts_at=starts_at,
        ends_at=starts_at + timedelta(days=1), inputs_sha256=b"", created_at=NOW,
        completeness="complete", created_by="ola",
    )  # fmt: skip
