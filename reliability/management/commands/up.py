"""Run the whole deployment in the foreground until Ctrl-C."""

import signal
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.conf import pace_name
from reliability.embedded.deployment import Deployment
from reliability.embedded.errors import AlreadyRunning, EmbeddedUnavailable


class Command(BaseCommand):
    help = "Run servers, migrations, web, workers and beat until Ctrl-C."
    requires_system_checks = ()  # the migration it starts runs them, with a database

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--port", type=int, default=0, help="Port (8000, if it is free).")
        parser.add_argument("--workers", type=int, default=1, help="Groups of job workers.")

    def handle(self, **options: Any) -> None:
        """Start, say where, wait, stop."""
        deployment = Deployment(
            Path(settings.DATA_DIR),
            embedded=settings.EMBEDDED,
            port=options["port"],
            workers=options["workers"],
        )
        # Until `wait` takes the signal over, being asked to stop must still undo the start.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            url = deployment.start(self.stdout.write)
        except (AlreadyRunning, EmbeddedUnavailable) as err:
            raise CommandError(str(err)) from None
        try:
            self._show(deployment, url)
            deployment.wait()
        finally:
            self.stdout.write("Stopping")
            deployment.stop()

    def _show(self, deployment: Deployment, url: str) -> None:
        for process in deployment.stack.processes() if deployment.stack else ():
            self.stdout.write(f"  {process.name:<8} {process.state:<8} pid {process.pid}")
        if (pace := pace_name()) != "shipped":
            self.stdout.write(f"PACE {pace}: test-sized times, not for real work")
        self.stdout.write(f"Console: {url}   Logs: {deployment.folder / 'log'}   Stop: Ctrl-C")
