"""Alerts can be silenced, tell why they are withheld, and share their outbox with morning mails."""

import datetime
import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models

# Whoever was told of an open alert before this migration need not be told again.
TOLD = "UPDATE reliability_alert SET told_at = opened_at WHERE opened_at IS NOT NULL"


class Migration(migrations.Migration):
    dependencies = [("reliability", "0040_pauses")]

    operations = [
        migrations.CreateModel(
            name='Silence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('kind', models.TextField(blank=True, db_default='', default='')),
                ('from_at', models.DateTimeField()),
                ('until_at', models.DateTimeField()),
                ('reason', models.TextField()),
                ('created_by', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('ended_by', models.TextField(blank=True, db_default='', default='')),
            ],
        ),
        migrations.AlterModelOptions(
            name='alertdelivery',
            options={'permissions': [('send_test', 'Can send a test to where alerts go')], 'verbose_name_plural': 'alert deliveries'},
        ),
        migrations.AddField(
            model_name='alert',
            name='told_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='alert',
            name='uncounted',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='alert',
            name='withheld',
            field=models.TextField(blank=True, choices=[('', 'told'), ('silenced', 'Silenced'), ('muted', 'Its causes are muted'), ('draining', 'A redrive drains it')], db_default='', default=''),
        ),
        migrations.AddField(
            model_name='alert',
            name='withheld_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='alertrule',
            name='currency',
            field=models.CharField(blank=True, db_default='', default='', max_length=3),
        ),
        migrations.AddField(
            model_name='alertrule',
            name='fingerprint',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddField(
            model_name='alertrule',
            name='kind',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddField(
            model_name='tenant',
            name='morning_at',
            field=models.TimeField(db_default=datetime.time(8, 0), default=datetime.time(8, 0), null=True),
        ),
        migrations.AddField(
            model_name='tenant',
            name='morning_zone',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='alert',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='reliability.alert'),
        ),
        migrations.AlterField(
            model_name='alertrule',
            name='measure',
            field=models.TextField(choices=[('open letters', 'Open dead letters'), ('oldest letter', 'Age of the oldest open letter, seconds'), ('sweep late', 'Seconds since the last good sweep'), ('statement', 'Statements absent or incomplete'), ('conservation', 'Accepted events without a job'), ('money at risk', 'Worth of the open letters in one currency, major units'), ('inflow', 'Letters buried within the last hour'), ('oldest ready job', 'Seconds the oldest due job has waited'), ('beat silent', 'Seconds since beat last ran anything'), ('old snapshot', 'Seconds the oldest snapshot has been held')]),
        ),
        migrations.AddConstraint(
            model_name='alertdelivery',
            constraint=models.UniqueConstraint(condition=models.Q(('alert', None)), fields=('tenant', 'occasion', 'email'), name='one_mail_per_morning'),
        ),
        migrations.AddConstraint(
            model_name='alertrule',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('measure', 'money at risk'), _negated=True), models.Q(('currency', ''), _negated=True), _connector='OR'), name='money_is_of_one_currency'),
        ),
        migrations.AddField(
            model_name='silence',
            name='rule',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='silences', to='reliability.alertrule'),
        ),
        migrations.AddField(
            model_name='silence',
            name='source',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='silences', to='reliability.source'),
        ),
        migrations.AddField(
            model_name='silence',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant'),
        ),
        migrations.AddIndex(
            model_name='silence',
            index=models.Index(fields=['tenant', '-until_at'], name='silences_newest'),
        ),
        migrations.AddConstraint(
            model_name='silence',
            constraint=models.CheckConstraint(condition=models.Q(('until_at__gt', models.F('from_at')), ('until_at__lte', django.db.models.expressions.CombinedExpression(models.F('from_at'), '+', models.Value(datetime.timedelta(days=30))))), name='a_silence_ends_within_thirty_days'),
        ),
        migrations.AddConstraint(
            model_name='silence',
            constraint=models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='a_silence_has_a_reason'),
        ),
        migrations.RunSQL(TOLD, migrations.RunSQL.noop),
    ]
