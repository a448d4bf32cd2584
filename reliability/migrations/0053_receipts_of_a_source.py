"""A receipt names its source, and indexes by which one source's receipts and jobs are counted."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


def source(*, null: bool) -> models.ForeignKey:
    return models.ForeignKey(
        "reliability.Source",
        null=null,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reliability", "0052_keys_of_a_kind")]

    operations = [
        # A million rows take a while; every other session keeps its limits.
        migrations.RunSQL(
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
        ),
        migrations.AddField("receipt", "source", source(null=True)),
        migrations.RunSQL(
            "UPDATE reliability_receipt receipt SET source_id = key.source_id"
            " FROM reliability_processedkey key WHERE key.id = receipt.key_id",
            migrations.RunSQL.noop,
        ),
        migrations.AlterField("receipt", "source", source(null=False)),
        AddIndexConcurrently(
            "receipt",
            models.Index(fields=["tenant", "source", "-id"], name="receipts_of_a_source"),
        ),
        RemoveIndexConcurrently("job", "jobs_of_a_source"),
        AddIndexConcurrently(
            "job",
            models.Index(
                fields=["source", "state"], include=["tenant"], name="jobs_of_a_source"
            ),
        ),
        migrations.RunSQL(
            "RESET statement_timeout; RESET lock_timeout",
            "RESET statement_timeout; RESET lock_timeout",
        ),
    ]
