"""Django's view of the engine: checks at start, handlers found in every installed app."""

import os
from importlib import import_module

from django.apps import AppConfig
from django.core.checks import register
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

HANDLERS_VARIABLE = "RELIABILITY_HANDLERS"
"""Modules with handlers outside the installed apps, comma-separated."""
BUILT_IN = ("reliability.work.forward", "reliability.after_work", "reliability.claim.try_door")
"""What registers itself with the layers below; above this one, and so imported by name."""


class ReliabilityConfig(AppConfig):
    name = "reliability"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks; import the installed apps' handlers and those named besides."""
        from reliability import checks  # noqa: PLC0415 - needs the app registry
        from reliability.models import roles  # noqa: PLC0415 - needs the app registry

        for check in checks.ALL:
            register(check)
        post_migrate.connect(roles.grant, dispatch_uid="reliability.roles")
        for name in BUILT_IN:
            import_module(name)
        autodiscover_modules("handlers")
        for name in os.environ.get(HANDLERS_VARIABLE, "").split(","):
            _import(name.strip())


def _import(name: str) -> None:
    if not name:
        return
    try:
        import_module(name)
    except ImportError as err:
        raise ImproperlyConfigured(f"{HANDLERS_VARIABLE} names {name!r}: {err}.") from None
