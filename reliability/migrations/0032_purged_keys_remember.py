"""A purged key remembers when its job was done."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0031_destinations")]

    operations = [
        migrations.AddField("processedkey", "done_at", models.DateTimeField(null=True)),
    ]
