"""`manage.py rescue`: at shipped times, kill a worker mid-job and watch the sweep bring it back."""

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.embedded.errors import AlreadyRunning, EmbeddedUnavailable
from reliability.embedded.servers import throwaway
from reliability.management.inside import is_inside, run_inside
from reliability.management.printing import say_json
from reliability.management.rescuing import watch


class Command(BaseCommand):
    help = (
        "Prove, in about nine minutes on throw-away servers, what the shipped times promise."
    )
    requires_system_checks = ()  # there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        """Start servers, then play in the process that runs over them."""
        if not is_inside():
            try:
                with throwaway() as addresses:
                    words = ["rescue", *(["--json"] if options["json"] else [])]
                    sys.exit(run_inside(words, folder=addresses.folder, pace="shipped"))
            except (AlreadyRunning, EmbeddedUnavailable) as err:
                raise CommandError(str(err)) from None
        seen = watch(Path(settings.DATA_DIR))
        if options["json"]:
            say_json(self.stdout, seen.facts())
        else:
            self.stdout.write(seen.words())
        sys.exit(0 if seen.ok else 1)
