"""Remember of a claim that its event's content was erased."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0037_rules_and_second_people")]

    operations = [
        migrations.AddField(
            model_name="processedkey",
            name="erased_at",
            field=models.DateTimeField(null=True),
        ),
    ]
