
import django.contrib.postgres.functions
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reliability', '0003_roles'),
    ]

    operations = [
        migrations.CreateModel(
            name='Redrive',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('state', models.TextField(choices=[('frozen', 'Not started'), ('waiting', 'Waiting for a second person'), ('running', 'Running'), ('paused', 'Paused'), ('stopped', 'Stopped itself'), ('cancelled', 'Cancelled'), ('done', 'Done')], default='frozen')),
                ('asked', models.TextField()),
                ('cutoff_at', models.DateTimeField()),
                ('more', models.BooleanField(default=False)),
                ('actor', models.TextField()),
                ('user_id', models.BigIntegerField(null=True)),
                ('mail_to', models.TextField(blank=True, default='')),
                ('reason', models.TextField(blank=True, default='')),
                ('ticket', models.TextField(blank=True, default='')),
                ('include_cannot_tell', models.BooleanField(default=False)),
                ('pace', models.TextField(choices=[('ramp', '1, then 10, then a steady rate'), ('steady', 'Steady rate from the first letter'), ('one', 'Only 1, then wait')], default='ramp')),
                ('rate', models.FloatField(default=1.0)),
                ('stop_percent', models.PositiveSmallIntegerField(default=20)),
                ('stop_after', models.PositiveIntegerField(default=10)),
                ('step', models.PositiveSmallIntegerField(default=0)),
                ('paced_at', models.DateTimeField(null=True)),
                ('judged_succeeded', models.PositiveIntegerField(default=0)),
                ('judged_failed', models.PositiveIntegerField(default=0)),
                ('why', models.TextField(blank=True, default='')),
                ('approved_by', models.TextField(blank=True, default='')),
                ('break_glass', models.TextField(blank=True, default='')),
                ('reviewed_by', models.TextField(blank=True, default='')),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('told_state', models.TextField(blank=True, default='')),
                ('mail_due_at', models.DateTimeField(null=True)),
                ('mail_tries', models.PositiveSmallIntegerField(default=0)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'permissions': [('approve_redrive', "Can approve other people's redrives and review broken glass")],
            },
        ),
        migrations.CreateModel(
            name='RedriveMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job_id', models.BigIntegerField()),
                ('round', models.IntegerField()),
                ('version', models.IntegerField()),
                ('verdict', models.TextField(choices=[('will run', 'Will run'), ('already applied', 'Already applied'), ('cannot tell', 'Cannot tell'), ('running', 'Running'), ('window closed', 'Window closed'), ('cannot run', 'Cannot run')])),
                ('outcome', models.TextField(choices=[('left alone', 'Left alone'), ('pending', 'Pending'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed again', 'Failed again'), ('skipped', 'Skipped')])),
                ('why', models.TextField(blank=True, db_default='', default='')),
                ('asked_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('settled_at', models.DateTimeField(null=True)),
                ('letter', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='memberships', to='reliability.deadletter')),
                ('redrive', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='reliability.redrive')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='BodyEdit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('number', models.PositiveIntegerField()),
                ('changed', models.JSONField(default=list)),
                ('actor', models.TextField()),
                ('user_id', models.BigIntegerField(null=True)),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('body', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='edit', to='reliability.body')),
                ('letter', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='edits', to='reliability.deadletter')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('number__gte', 2)), name='edits_come_after_the_original')],
            },
        ),
        migrations.CreateModel(
            name='LetterGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                ('kind', models.TextField()),
                ('fingerprint', models.TextField()),
                ('owner', models.CharField(blank=True, max_length=120)),
                ('note', models.TextField(blank=True)),
                ('ticket', models.CharField(blank=True, max_length=200)),
                ('muted_until', models.DateTimeField(null=True)),
                ('changed_at', models.DateTimeField()),
                ('changed_by', models.TextField()),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='letter_groups', to='reliability.source')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'source', 'kind', 'fingerprint'), name='one_note_per_cause')],
            },
        ),
        migrations.AddIndex(
            model_name='redrive',
            index=models.Index(fields=['tenant', '-cutoff_at', '-id'], name='redrives_newest'),
        ),
        migrations.AddIndex(
            model_name='redrive',
            index=models.Index(fields=['state'], name='redrives_by_state'),
        ),
        migrations.AddConstraint(
            model_name='redrive',
            constraint=models.CheckConstraint(condition=models.Q(('asked', ''), _negated=True), name='a_redrive_has_a_filter'),
        ),
        migrations.AddConstraint(
            model_name='redrive',
            constraint=models.CheckConstraint(condition=models.Q(('started_at', None), models.Q(('reason', ''), _negated=True), _connector='OR'), name='started_redrives_have_a_reason'),
        ),
        migrations.AddIndex(
            model_name='redrivemember',
            index=models.Index(fields=['redrive', 'outcome', 'letter'], name='members_of_a_redrive'),
        ),
        migrations.AddConstraint(
            model_name='redrivemember',
            constraint=models.UniqueConstraint(fields=('letter', 'redrive'), name='one_place_per_letter_in_a_redrive'),
        ),
    ]
