
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reliability', '0034_notices'),
    ]

    operations = [
        migrations.AddField(
            model_name='bodyedit',
            name='key_before',
            field=models.TextField(blank=True, default=''),
        ),
    ]
