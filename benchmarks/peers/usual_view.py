"""The usual webhook view: verify, get_or_create the event, delay a task when it has committed."""

import hashlib
import hmac
import json
import os
from urllib.parse import urlsplit

import django
from celery import Celery
from django.conf import settings

_parts = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY="of a benchmark",  # noqa: S106 - signs nothing
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes",
                    "django.contrib.sessions", "django.contrib.messages"],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": _parts.path.lstrip("/"),
        "USER": _parts.username, "PASSWORD": _parts.password, "HOST": _parts.hostname,
        "PORT": _parts.port, "CONN_MAX_AGE": None,
    }},
    USE_TZ=True,
)  # fmt: skip
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 - needs the settings
from django.db import models, transaction  # noqa: E402 - likewise
from django.http import HttpRequest, HttpResponse  # noqa: E402 - likewise
from django.urls import path  # noqa: E402 - likewise
from django.views.decorators.csrf import csrf_exempt  # noqa: E402 - likewise

SECRET = b"whsec_of_a_benchmark"

tasks = Celery("usual", broker=os.environ["BROKER_URL"])
tasks.conf.update(task_ignore_result=True)


@tasks.task
def work(pk: int) -> None: ...


class Event(models.Model):
    event_id = models.TextField(unique=True)
    body = models.JSONField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "benchmarks"
        db_table = "peer_event"
        managed = False


@csrf_exempt
def receive(request: HttpRequest) -> HttpResponse:
    body = request.body
    fields = dict(
        part.split("=", 1) for part in request.headers["Stripe-Signature"].split(",")
    )
    mac = hmac.new(SECRET, f"{fields['t']}.".encode() + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(mac, fields["v1"]):
        return HttpResponse(status=400)
    told = json.loads(body)
    with transaction.atomic():
        event, new = Event.objects.get_or_create(event_id=told["id"], defaults={"body": told})
        if new:
            transaction.on_commit(lambda: work.delay(event.pk))
    return HttpResponse()


urlpatterns = [path("hook/", receive)]
application = get_wsgi_application()
