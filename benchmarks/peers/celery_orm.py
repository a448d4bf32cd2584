"""Celery over Redis with the same guarantee, claimed and finished by Django's ORM as one would."""

import os
from datetime import timedelta
from urllib.parse import urlsplit

import django
from celery import Celery
from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

if not settings.configured:
    at = urlsplit(os.environ["DATABASE_URL"])
    settings.configure(USE_TZ=True, DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": at.path.lstrip("/"),
        "USER": at.username, "PASSWORD": at.password, "HOST": at.hostname, "PORT": at.port,
    }})  # fmt: skip
    django.setup()

from benchmarks.peers.effect_rows import Effect

app = Celery("celery_orm", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
LEASE = timedelta(seconds=60)
WAITING, RUNNING, DONE = range(3)


class Job(models.Model):
    key = models.TextField(unique=True)
    state = models.SmallIntegerField(default=WAITING)
    starts = models.SmallIntegerField(default=0)
    token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "peers"
        managed = False
        db_table = "peer_job"


class Attempt(models.Model):
    job = models.ForeignKey(Job, models.CASCADE, db_constraint=False)
    number = models.SmallIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    pk = models.CompositePrimaryKey("job_id", "number")

    class Meta:
        app_label = "peers"
        managed = False
        db_table = "peer_attempt"


@app.task
def same_guarantee(job_id: int) -> None:
    with transaction.atomic():
        job = Job.objects.select_for_update().filter(pk=job_id, state=WAITING).first()
        if job is None:
            return
        job.state, job.starts, job.token = RUNNING, job.starts + 1, job.token + 1
        job.lease_until = timezone.now() + LEASE
        job.save()
        Attempt.objects.create(job=job, number=job.starts, started_at=timezone.now())
    with transaction.atomic():
        Effect.objects.get_or_create(key=job.key)
        mine = Job.objects.filter(pk=job.pk, token=job.token, state=RUNNING)
        now = timezone.now()
        if not mine.update(state=DONE, finished_at=now, lease_until=None):
            raise RuntimeError("taken over")
        Attempt.objects.filter(job=job, number=job.starts).update(finished_at=now)
