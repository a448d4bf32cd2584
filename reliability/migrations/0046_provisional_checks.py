"""Keep what a provider was asked about before its statement, and what came of it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0045_saved_views")]

    operations = [
        migrations.CreateModel(
            name="ProvisionalCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked_at", models.DateTimeField()),
                ("from_at", models.DateTimeField()),
                ("accepted", models.PositiveIntegerField(default=0)),
                ("known", models.PositiveIntegerField(default=0)),
                ("why", models.TextField(blank=True, default="")),
                ("source", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="provisional_checks", to="reliability.source")),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reliability.tenant")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["source", "-asked_at"], name="provisional_checks_newest"),
                    models.Index(condition=models.Q(("why", "")), fields=["source", "-asked_at"], name="provisional_checks_good"),
                    models.Index(fields=["asked_at"], name="provisional_checks_oldest"),
                ],
            },
        ),
    ]
