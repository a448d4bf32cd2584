"""Throw-away servers for the session, addressed before Django reads its settings."""

import base64
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from reliability.embedded.servers import throwaway

TEST_DATABASE = "RELIABILITY_TEST_DATABASE_URL"
"""Set to run the database tests on another PostgreSQL, by a role that may create databases."""

_session = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers and load the settings against them; pytest-django does the rest."""
    if config.option.help or config.option.version:
        return
    addresses = _session.enter_context(throwaway(durable=False))
    for name in ("DATABASE_URL", "BROKER_URL", "RELIABILITY_PACE"):
        os.environ.pop(name, None)
    os.environ["RELIABILITY_DATA"] = str(addresses.folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "reliability.project.settings"
    if other := os.environ.get(TEST_DATABASE):
        os.environ |= {
            "DATABASE_URL": other,
            "BROKER_URL": addresses.broker_url,
            "SECRET_KEY": secrets.token_urlsafe(48),
            "RELIABILITY_KEY_RING": f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        }
    from django.conf import settings  # noqa: PLC0415 - only now are the addresses known

    settings.RELIABILITY = {"refuse_sockets": True}
    Path(settings.STATIC_ROOT).mkdir(exist_ok=True)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.STORAGES["staticfiles"]["BACKEND"] = (
        "django.contrib.staticfiles.storage.StaticFilesStorage"
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End and remove the servers."""
    _session.close()


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Let tests that commit empty the audit trail afterwards; the guard itself stays in place."""
    from django.db import connection  # noqa: PLC0415 - only now are the addresses known

    from reliability.work.outside import close_threads  # noqa: PLC0415 - likewise

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE reliability_auditentry DISABLE TRIGGER audit_is_never_emptied"
        )
    yield
    close_threads()
