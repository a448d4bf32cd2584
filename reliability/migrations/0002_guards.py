"""What the database itself refuses: illegal moves of a job, changes of the audit trail."""

from django.db import migrations

LEGAL = (
    ("ready", "running"),
    ("ready", "ready"),
    ("ready", "dead"),
    ("ready", "done"),
    ("running", "running"),
    ("running", "done"),
    ("running", "ready"),
    ("running", "dead"),
    ("dead", "ready"),
    ("dead", "done"),
    ("dead", "discarded"),
    ("dead", "resolved"),
    ("discarded", "dead"),
)
PAIRS = ", ".join(f"('{old}', '{new}')" for old, new in LEGAL)

FENCE = f"""
CREATE SEQUENCE reliability_token AS bigint;

CREATE FUNCTION reliability_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % may not move from % (token %) to % (token %)',
        OLD.id, OLD.state, OLD.token, NEW.state, NEW.token
        USING ERRCODE = 'check_violation', CONSTRAINT = 'job_moves_are_legal';
END $$;

CREATE TRIGGER job_moves_are_legal BEFORE UPDATE OF state ON reliability_job
FOR EACH ROW WHEN ((OLD.state, NEW.state) NOT IN ({PAIRS}) OR NEW.token < OLD.token)
EXECUTE FUNCTION reliability_refuse_move();
"""

UNFENCE = """
DROP TRIGGER job_moves_are_legal ON reliability_job;
DROP FUNCTION reliability_refuse_move();
DROP SEQUENCE reliability_token;
"""

AUDIT = """
CREATE FUNCTION reliability_refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'append_only';
END $$;

CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON reliability_auditentry
FOR EACH ROW EXECUTE FUNCTION reliability_refuse_rewrite();
CREATE TRIGGER audit_is_never_emptied BEFORE TRUNCATE ON reliability_auditentry
FOR EACH STATEMENT EXECUTE FUNCTION reliability_refuse_rewrite();
CREATE TRIGGER attempts_are_append_only BEFORE UPDATE ON reliability_attempt
FOR EACH ROW EXECUTE FUNCTION reliability_refuse_rewrite();
"""

UNAUDIT = """
DROP TRIGGER attempts_are_append_only ON reliability_attempt;
DROP TRIGGER audit_is_never_emptied ON reliability_auditentry;
DROP TRIGGER audit_is_append_only ON reliability_auditentry;
DROP FUNCTION reliability_refuse_rewrite();
"""

KEYS = """
ALTER TABLE reliability_processedkey ADD CONSTRAINT key_is_1_to_255_plain_bytes
    CHECK (octet_length(key) BETWEEN 1 AND 255 AND key !~ '[\\x01-\\x1f\\x7f]');
ALTER TABLE reliability_operation ADD CONSTRAINT reference_is_1_to_255_bytes
    CHECK (octet_length(reference) BETWEEN 1 AND 255);
ALTER TABLE reliability_operation ADD CONSTRAINT operation_belongs_to_its_key
    FOREIGN KEY (key_id) REFERENCES reliability_processedkey (id) NOT DEFERRABLE;
"""

UNKEYS = """
ALTER TABLE reliability_operation DROP CONSTRAINT operation_belongs_to_its_key;
ALTER TABLE reliability_processedkey DROP CONSTRAINT key_is_1_to_255_plain_bytes;
ALTER TABLE reliability_operation DROP CONSTRAINT reference_is_1_to_255_bytes;
"""

FROZEN = """
CREATE TRIGGER reports_are_frozen BEFORE UPDATE ON reliability_report
FOR EACH ROW WHEN ((
    OLD.source_id, OLD.day, OLD.version, OLD.statement_id, OLD.completeness, OLD.gates,
    OLD.counts, OLD.bridge, OLD.inputs_sha256, OLD.forced_by
) IS DISTINCT FROM (
    NEW.source_id, NEW.day, NEW.version, NEW.statement_id, NEW.completeness, NEW.gates,
    NEW.counts, NEW.bridge, NEW.inputs_sha256, NEW.forced_by
)) EXECUTE FUNCTION reliability_refuse_rewrite();
CREATE TRIGGER verdicts_are_frozen BEFORE UPDATE ON reliability_verdict
FOR EACH ROW EXECUTE FUNCTION reliability_refuse_rewrite();
"""

UNFROZEN = """
DROP TRIGGER verdicts_are_frozen ON reliability_verdict;
DROP TRIGGER reports_are_frozen ON reliability_report;
"""


class Migration(migrations.Migration):
    dependencies = [("reliability", "0001_initial")]

    operations = [
        migrations.RunSQL(FENCE, UNFENCE),
        migrations.RunSQL(AUDIT, UNAUDIT),
        migrations.RunSQL(KEYS, UNKEYS),
        migrations.RunSQL(FROZEN, UNFROZEN),
    ]
