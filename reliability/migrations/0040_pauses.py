"""A destination may be paused by a person; pausing is a permission of its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0039_tokens_end")]

    operations = [
        migrations.AddField(
            model_name="destination",
            name="paused_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="destination",
            name="paused_by",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="destination",
            name="pause_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AlterModelOptions(
            name="kindpause",
            options={
                "permissions": [("pause_work", "Can pause and resume kinds and destinations")]
            },
        ),
    ]
