"""A kind may be paused by a person."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0032_purged_keys_remember")]

    operations = [
        migrations.CreateModel(
            name='KindPause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.TextField()),
                ('paused_at', models.DateTimeField()),
                ('paused_by', models.TextField()),
                ('reason', models.TextField(blank=True, default='')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind'), name='one_pause_per_kind')],
            },
        ),
    ]
