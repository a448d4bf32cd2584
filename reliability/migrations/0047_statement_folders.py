"""Folders that statements are taken from, the files seen there, and how far an import is."""

import django.db.models.deletion
from django.db import migrations, models

ID = models.BigAutoField(
    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
)
TENANT = {
    "on_delete": django.db.models.deletion.PROTECT,
    "related_name": "+",
    "to": "reliability.tenant",
}


class Migration(migrations.Migration):
    dependencies = [("reliability", "0046_provisional_checks")]

    operations = [
        migrations.CreateModel(
            name="StatementFolder",
            fields=[
                ("id", ID.clone()),
                ("url", models.TextField()),
                ("pattern", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("created_by", models.TextField()),
                ("looked_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("why", models.TextField(blank=True, default="")),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statement_folder",
                        to="reliability.source",
                    ),
                ),
                ("tenant", models.ForeignKey(**TENANT)),
            ],
        ),
        migrations.CreateModel(
            name="FolderFile",
            fields=[
                ("id", ID.clone()),
                ("name", models.TextField(db_collation="C")),
                ("size_bytes", models.BigIntegerField()),
                ("modified", models.TextField()),
                ("since", models.DateTimeField()),
                ("taken_at", models.DateTimeField(null=True)),
                ("refused", models.TextField(blank=True, default="")),
                (
                    "artefact",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="reliability.artefact",
                    ),
                ),
                (
                    "folder",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="reliability.statementfolder",
                    ),
                ),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, **TENANT)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["folder", "name"], name="one_row_per_folder_file"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reading",
            fields=[
                ("id", ID.clone()),
                ("artefact_id", models.BigIntegerField(unique=True)),
                ("name", models.TextField()),
                ("lines", models.BigIntegerField(default=0)),
                ("started_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, **TENANT)),
            ],
        ),
    ]
