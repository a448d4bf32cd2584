"""Indexes for the questions people ask: by downstream key, by member, by time, what is held."""


import django.contrib.postgres.indexes
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reliability', '0035_edit_generation'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='job',
            name='jobs_waiting',
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=django.contrib.postgres.indexes.GinIndex(fields=['facts'], name='audit_of_a_member', opclasses=['jsonb_path_ops']),
        ),
        migrations.AddIndex(
            model_name='deadletter',
            index=models.Index(condition=models.Q(('closed_at__isnull', False)), fields=['tenant', 'closed_at'], name='letters_closed'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('held', ''), ('state', 'ready')), fields=['queue', 'run_at'], name='jobs_waiting'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('state', 'ready'), models.Q(('held', ''), _negated=True)), fields=['kind'], name='jobs_held'),
        ),
        migrations.AddIndex(
            model_name='processedkey',
            index=models.Index(condition=models.Q(('downstream_key', models.F('key')), _negated=True), fields=['downstream_key'], name='downstream_key_anywhere'),
        ),
        migrations.AddIndex(
            model_name='receipt',
            index=django.contrib.postgres.indexes.BrinIndex(fields=['at'], name='receipts_by_time'),
        ),
        migrations.AddIndex(
            model_name='verdict',
            index=models.Index(condition=models.Q(('operation__isnull', False)), fields=['operation'], name='verdicts_of_an_operation'),
        ),
    ]
