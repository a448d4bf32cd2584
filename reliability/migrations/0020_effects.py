"""Give single outside effects their marks."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reliability', '0011_bodies_are_kept_as_received'),
    ]

    operations = [
        migrations.CreateModel(
            name='Effect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('downstream_key', models.TextField()),
                ('round', models.IntegerField()),
                ('token', models.BigIntegerField()),
                ('begun_at', models.DateTimeField()),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('result', models.JSONField(null=True)),
                ('job', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='effects', to='reliability.job')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('job', 'name'), name='one_mark_per_effect')],
            },
        ),
    ]
