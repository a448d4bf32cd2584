"""The Celery app: a doorbell for the workers, and the clock that rings it."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")

app = Celery("reliability", namespace="CELERY")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["reliability"])
