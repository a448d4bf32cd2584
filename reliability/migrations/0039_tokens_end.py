"""Let a token end by itself, and say when it was last used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0038_erasure")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            field=models.DateTimeField(null=True),
        ),
    ]
