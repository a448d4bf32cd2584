"""The embedded deployment's settings, over the tests' own database, without collected files."""

import os

from reliability.project.settings import *  # noqa: F403 - the same settings but these
from reliability.project.settings import DATABASES, STORAGES

DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
