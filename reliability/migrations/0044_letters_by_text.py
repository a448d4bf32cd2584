"""Find open letters by a piece of their error message, without holding up those being buried."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently, TrigramExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reliability", "0043_more_shipped_rules")]

    operations = [
        # Trusted since PostgreSQL 13: the owner of the database may install it.
        TrigramExtension(),
        # A million letters take most of a minute; every other session keeps its limits.
        migrations.RunSQL(
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
        ),
        AddIndexConcurrently(
            model_name="deadletter",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("status", "open")),
                fields=["message"],
                name="letters_open_by_text",
                opclasses=["gin_trgm_ops"],
            ),
        ),
        migrations.RunSQL(
            "RESET statement_timeout; RESET lock_timeout",
            "RESET statement_timeout; RESET lock_timeout",
        ),
    ]
