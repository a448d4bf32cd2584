"""`manage.py erase`: take a person's data out of stored events; their claims stay."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.management.asking import actor, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.work.dead_letters import Act
from reliability.work.erase import erase


class Command(BaseCommand):
    help = "Erase every stored event that holds a text: an e-mail address, a customer's id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--subject", required=True, help="at least 4 characters, as written"
        )
        parser.add_argument("--reason", required=True)
        parser.add_argument("--dry-run", action="store_true", help="count only")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        act = Act(tenant_called(options["tenant"]), actor(), reason=options["reason"])
        try:
            found = erase(options["subject"], act, dry_run=options["dry_run"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        done = "would be erased" if options["dry_run"] else "erased"
        (say_json if options["json"] else say_facts)(
            self.stdout, {"done": done, **asdict(found)}
        )
