"""The key ledger counted piece by piece."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0050_lists_at_size")]

    operations = [
        migrations.CreateModel(
            name="Stretch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.BigIntegerField()),
                ("accepted", models.IntegerField()),
                ("purged", models.IntegerField()),
                ("ready", models.IntegerField()),
                ("running", models.IntegerField()),
                ("done", models.IntegerField()),
                ("dead", models.IntegerField()),
                ("discarded", models.IntegerField()),
                ("resolved", models.IntegerField()),
                ("counted_at", models.DateTimeField()),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stretches",
                        to="reliability.source",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reliability.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "stretches",
                "indexes": [models.Index(fields=["counted_at"], name="stretches_to_count")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("number", "source"), name="one_count_per_stretch_and_source"
                    )
                ],
            },
        ),
    ]
