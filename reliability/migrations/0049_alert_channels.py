"""Channels besides mail, the rules that tell them, and the messages that went there."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0048_operations_of_a_batch")]

    operations = [
        migrations.CreateModel(
            name="AlertChannel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "public_id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        unique=True,
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("scheme", models.CharField(max_length=20)),
                ("shown", models.CharField(max_length=300)),
                ("sealed_address", models.BinaryField()),
                ("sealed_signing", models.BinaryField(default=b"")),
                ("last_four", models.CharField(blank=True, default="", max_length=4)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.TextField()),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "rules",
                    models.ManyToManyField(
                        related_name="channels", to="reliability.alertrule"
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at", None)),
                        fields=("tenant", "name"),
                        name="one_channel_per_name",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="alertdelivery",
            name="channel",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="reliability.alertchannel",
            ),
        ),
    ]
