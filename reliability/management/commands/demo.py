"""`manage.py demo`: three realistic days on servers of its own, to look at or to check."""

import os
import random
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.embedded.errors import AlreadyRunning, EmbeddedUnavailable
from reliability.embedded.place import free_port
from reliability.embedded.servers import Servers
from reliability.management.company import people
from reliability.management.demonstration import LATENCY_MS, TROUBLES, chronicle_of, play
from reliability.management.inside import is_inside, run_inside
from reliability.management.printing import say_facts, say_json, say_table
from reliability.management.progress import say
from reliability.management.stage import Stage, Wishes, stage

PORT = 8000
BANNER = "PACE quick: seconds where the shipped times are minutes; embedded servers only."


class Command(BaseCommand):
    help = (
        "Show three realistic days: servers, workers, trouble and all; stays up until Ctrl-C."
    )
    requires_system_checks = ()  # there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--exit", action="store_true", help="end once all is settled")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--events", type=int, default=2000, help="distinct events of yesterday (2000)"
        )
        parser.add_argument("--seed", type=int, help="of the day (random)")

    def handle(self, **options: Any) -> None:
        """Keep the servers in the outer process, play in the one that runs over them."""
        least = TROUBLES.failing_charges + TROUBLES.express_orders + TROUBLES.broken + 12
        if options["events"] < least:
            raise CommandError(f"--events must be {least} or more.")
        try:
            code = self._inside(options) if is_inside() else _outside(options)
        except (AlreadyRunning, EmbeddedUnavailable) as err:
            raise CommandError(str(err)) from None
        sys.exit(code)

    def _inside(self, options: dict[str, Any]) -> int:
        say(BANNER)
        told = chronicle_of(options["seed"], options["events"])
        wishes = Wishes(seed=options["seed"], latency_ms=LATENCY_MS, port=free_port(PORT))
        with stage(Path(settings.DATA_DIR), wishes) as played:
            shown = people()
            day = play(played, told, {one["user"]: one["password"] for one in shown})
            if options["json"]:
                say_json(self.stdout, day.facts())
            else:
                say_facts(self.stdout, {check.promise: _words(check) for check in day.checks})
            if not options["exit"]:
                self._stay(played, shown)
        return 0 if day.ok else 1

    def _stay(self, played: Stage, shown: list[dict[str, str]]) -> None:
        """Say where to look and wait for Ctrl-C, or for the end of whoever keeps the servers."""
        keeper = os.getppid()
        say_table(self.stdout, "People, each in both tenants", shown)
        self.stdout.write(f"Mails and alerts as sent: {played.sink.url}/mails")
        self.stdout.write(f"Logs: {played.folder / 'log'}")
        self.stdout.write(f"{BANNER}\nConsole: {played.stack.url}   Stop: Ctrl-C")
        self.stdout.flush()

        def check() -> None:
            if os.getppid() != keeper:
                sys.exit(1)

        played.stack.wait(check)


def _outside(options: dict[str, Any]) -> int:
    """Start servers that have forgotten the last demo, and run again over them."""
    servers = Servers(Path(settings.DATA_DIR) / "demo", fresh=True)
    seed = random.randrange(10**6) if options["seed"] is None else options["seed"]
    chosen = [f"--{name}" for name in ("exit", "json") if options[name]]
    servers.start()
    try:
        return run_inside(
            ["demo", f"--seed={seed}", f"--events={options['events']}", *chosen],
            folder=servers.folder,
            each_second=servers.mend,
        )
    finally:
        servers.stop()


def _words(check: Any) -> str:
    if check.ok:
        return f"ok: {check.found}"
    return f"FAILED: expected {check.expected}, found {check.found}"
