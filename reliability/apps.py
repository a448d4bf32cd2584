"""Django's view of the engine: checks at start, handlers found in every installed app."""

from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class ReliabilityConfig(AppConfig):
    name = "reliability"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and import ``handlers`` modules of the installed apps."""
        from reliability import checks  # noqa: PLC0415 - needs the app registry
        from reliability.models import roles  # noqa: PLC0415 - needs the app registry

        for check in checks.ALL:
            register(check)
        post_migrate.connect(roles.grant, dispatch_uid="reliability.roles")
        autodiscover_modules("handlers")
