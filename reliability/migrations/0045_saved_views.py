"""Keep filters under a name, for one person or for a tenant."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("reliability", "0044_letters_by_text"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ("page", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=60)),
                ("query", models.TextField()),
                ("shared", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField()),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reliability.tenant")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("shared", True)), fields=("tenant", "page", "name"), name="one_shared_view_per_name"),
                    models.UniqueConstraint(condition=models.Q(("shared", False)), fields=("tenant", "owner", "page", "name"), name="one_own_view_per_name"),
                ],
            },
        ),
    ]
