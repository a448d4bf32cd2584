"""The payout or batch an operation is settled with."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0047_statement_folders")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="batch",
            field=models.TextField(db_collation="C", null=True),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["source", "batch"],
                name="operations_of_a_batch",
                condition=models.Q(batch__isnull=False),
            ),
        ),
    ]
