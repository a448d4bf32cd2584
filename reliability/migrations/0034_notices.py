"""Whoever asked for a job that failed is owed a mail."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reliability", "0033_kind_pauses")]

    operations = [
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.TextField()),
                ('tries', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('due_at', models.DateTimeField()),
                ('sent_at', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True, db_default='', default='')),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='notice', to='reliability.job')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('sent_at', None)), fields=['due_at'], name='notices_due')],
            },
        ),
    ]
