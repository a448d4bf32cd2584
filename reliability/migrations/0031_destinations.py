"""Sources may send their events on, answer after work, and hold what looks like a replay."""

import django.db.models.deletion
import uuid
import django.contrib.postgres.functions
from django.db import migrations, models



class Migration(migrations.Migration):
    dependencies = [("reliability", "0030_confirmation")]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('sha256', models.BinaryField(max_length=32, unique=True)),
                ('last_four', models.CharField(max_length=4)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Destination',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('slug', models.CharField(max_length=60)),
                ('url', models.CharField(max_length=2000)),
                ('sealed', models.BinaryField()),
                ('last_four', models.CharField(max_length=4)),
                ('concurrency_max', models.PositiveSmallIntegerField(default=8)),
                ('completion_seconds', models.PositiveIntegerField(default=3600)),
                ('rules', models.JSONField(default=dict)),
                ('failures', models.PositiveIntegerField(db_default=0, default=0)),
                ('open_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='DestinationAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.BigIntegerField()),
                ('status', models.PositiveSmallIntegerField()),
                ('size_bytes', models.PositiveIntegerField()),
                ('cut', models.BooleanField(default=False)),
                ('sha256', models.BinaryField(max_length=32)),
                ('body', models.BinaryField()),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='source',
            name='answer',
            field=models.TextField(choices=[('at once', 'Once claimed'), ('after work', 'Once worked')], db_default='at once', default='at once'),
        ),
        migrations.AddField(
            model_name='source',
            name='hold_replays',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to='reliability.tenant'),
        ),
        migrations.AddField(
            model_name='destination',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='destinations', to='reliability.tenant'),
        ),
        migrations.AddField(
            model_name='source',
            name='destination',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sources', to='reliability.destination'),
        ),
        migrations.AddField(
            model_name='destinationanswer',
            name='job',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='reliability.job'),
        ),
        migrations.AddField(
            model_name='destinationanswer',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant'),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.UniqueConstraint(condition=models.Q(('revoked_at', None)), fields=('tenant', 'name'), name='one_live_token_per_name'),
        ),
        migrations.AddConstraint(
            model_name='destination',
            constraint=models.UniqueConstraint(fields=('tenant', 'slug'), name='one_destination_per_slug'),
        ),
        migrations.AddConstraint(
            model_name='destination',
            constraint=models.CheckConstraint(condition=models.Q(('concurrency_max__gte', 1), ('concurrency_max__lte', 64)), name='concurrency_is_sane'),
        ),
        migrations.AddIndex(
            model_name='destinationanswer',
            index=models.Index(fields=['at'], name='answers_by_age'),
        ),
    ]
