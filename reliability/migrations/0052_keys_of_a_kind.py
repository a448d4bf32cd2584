"""An index by which deliveries of a rare kind are found without reading all receipts."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reliability", "0051_stretches")]

    operations = [
        # A million rows take a while; every other session keeps its limits.
        migrations.RunSQL(
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
        ),
        AddIndexConcurrently(
            model_name="processedkey",
            index=models.Index(fields=["kind", "-id"], name="keys_of_a_kind"),
        ),
        migrations.RunSQL(
            "RESET statement_timeout; RESET lock_timeout",
            "RESET statement_timeout; RESET lock_timeout",
        ),
    ]
