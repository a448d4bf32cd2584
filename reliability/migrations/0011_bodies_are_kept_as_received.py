"""What was received is never overwritten: an edit is a body of its own, beside it."""

from django.db import migrations

FROZEN = """
CREATE TRIGGER bodies_are_kept_as_received BEFORE UPDATE ON reliability_body
FOR EACH ROW WHEN (
    (OLD.key_id, OLD.raw, OLD.headers, OLD.sha256, OLD.created_at)
    IS DISTINCT FROM (NEW.key_id, NEW.raw, NEW.headers, NEW.sha256, NEW.created_at)
) EXECUTE FUNCTION reliability_refuse_rewrite();
"""

UNFROZEN = "DROP TRIGGER bodies_are_kept_as_received ON reliability_body;"


class Migration(migrations.Migration):
    dependencies = [("reliability", "0010_redrive")]

    operations = [migrations.RunSQL(FROZEN, UNFROZEN)]
