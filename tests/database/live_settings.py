"""The deployment's settings, with static files that need not be collected first."""

from reliability.project.settings import *  # noqa: F403 - the same settings but one
from reliability.project.settings import STORAGES

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
