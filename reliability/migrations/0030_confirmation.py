"""Events whose signature does not bind their body wait for the provider to confirm them."""

import django.db.models.deletion
from django.db import migrations, models



class Migration(migrations.Migration):
    dependencies = [("reliability", "0020_effects")]

    operations = [
        migrations.CreateModel(
            name='ApiCredential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('last_four', models.CharField(max_length=4)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name='processedkey',
            name='unconfirmed',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AlterField(
            model_name='job',
            name='held',
            field=models.TextField(blank=True, choices=[('', 'not held'), ('kind unknown', 'no worker knows this kind'), ('paused', 'its source, kind or destination is paused'), ('unconfirmed', 'its provider has not confirmed it yet')], db_default='', default=''),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('held', 'unconfirmed'), ('state', 'ready')), fields=['run_at'], name='jobs_to_confirm'),
        ),
        migrations.AddField(
            model_name='apicredential',
            name='source',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='api_credential', to='reliability.source'),
        ),
        migrations.AddField(
            model_name='apicredential',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reliability.tenant'),
        ),
    ]
