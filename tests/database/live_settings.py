"""The deployment's settings, with static files that need not be collected first."""

from reliability.project.settings import *  # noqa: F403 - the same settings but these
from reliability.project.settings import INSTALLED_APPS, STORAGES

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
INSTALLED_APPS.append("tests.database.live_app.KnownCertificate")
