"""Django's view of the console: its one check at start."""

from django.apps import AppConfig
from django.core.checks import register


class ConsoleConfig(AppConfig):
    name = "reliability.console"
    verbose_name = "Operator console"

    def ready(self) -> None:
        """Refuse to start while a routed view declares no permission."""
        from reliability.console import access  # noqa: PLC0415 - needs the app registry

        register(access.every_view_declares_a_permission)
