"""Rules that ignore, recoveries that take two people, and lines that cost one look-up less."""


import django.contrib.postgres.functions
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reliability', '0036_questions'),
    ]

    operations = [
        migrations.AddField(
            model_name='discrepancy',
            name='needs_two',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='recovered_by',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='discrepancy',
            name='owner',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='discrepancy',
            name='recover_asked_by',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='statementline',
            name='statement',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='reliability.statement'),
        ),
        migrations.AlterField(
            model_name='verdict',
            name='report',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='verdicts', to='reliability.report'),
        ),
        migrations.CreateModel(
            name='IgnoreRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.CharField(max_length=120)),
                ('family', models.TextField()),
                ('operation_class', models.TextField()),
                ('starts_with', models.TextField(blank=True, db_collation='C', db_default='', default='')),
                ('amount_minor_max', models.BigIntegerField(null=True)),
                ('currency', models.CharField(blank=True, db_default='', default='', max_length=3)),
                ('reason', models.TextField()),
                ('until', models.DateField()),
                ('created_by', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('ended_by', models.TextField(blank=True, db_default='', default='')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ignore_rules', to='reliability.source')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='rule',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='ignored', to='reliability.ignorerule'),
        ),
        migrations.AddConstraint(
            model_name='discrepancy',
            constraint=models.CheckConstraint(condition=models.Q(('needs_two', False), models.Q(('status__in', ['recovering', 'recovered']), _negated=True), models.Q(models.Q(('recover_asked_by', ''), _negated=True), models.Q(('recovered_by', ''), _negated=True), models.Q(('recovered_by', models.F('recover_asked_by')), _negated=True)), _connector='OR'), name='large_recoveries_take_two_people'),
        ),
        migrations.AddConstraint(
            model_name='ignorerule',
            constraint=models.CheckConstraint(condition=models.Q(('amount_minor_max', None), models.Q(('currency', ''), _negated=True), _connector='OR'), name='a_rule_of_an_amount_names_its_currency'),
        ),
    ]
