"""Django's view of the console: its checks at start, and those of the alerts."""

from django.apps import AppConfig
from django.core.checks import Tags, register


class ConsoleConfig(AppConfig):
    name = "reliability.console"
    verbose_name = "Operator console"

    def ready(self) -> None:
        """Refuse to start while a routed view declares no permission."""
        from reliability.alerts import checks  # noqa: PLC0415 - needs the app registry
        from reliability.console import access  # noqa: PLC0415 - likewise

        register(access.every_view_declares_a_permission)
        register(checks.mail_leaves_the_machine, deploy=True)
        register(checks.links_have_a_host, deploy=True)
        register(checks.a_dead_beat_is_noticed, deploy=True)
        register(checks.every_tenant_can_be_woken, Tags.database)
