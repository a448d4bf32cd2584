"""What the letters of one cause are worth is summed off their index, without reading each letter."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reliability", "0053_receipts_of_a_source")]

    operations = [
        # A million rows take a while; every other session keeps its limits.
        migrations.RunSQL(
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
        ),
        RemoveIndexConcurrently("deadletter", "letters_open_by_cause"),
        AddIndexConcurrently(
            "deadletter",
            models.Index(
                fields=["tenant", "fingerprint", "-buried_at", "-id"],
                include=["amount_minor", "currency", "exponent"],
                name="letters_open_by_cause",
                condition=models.Q(status="open"),
            ),
        ),
        migrations.RunSQL(
            "RESET statement_timeout; RESET lock_timeout",
            "RESET statement_timeout; RESET lock_timeout",
        ),
    ]
