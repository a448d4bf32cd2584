"""`manage.py pause`: let no job of a kind start, or let them go on."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reliability.management.asking import actor, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.work.dead_letters import Act
from reliability.work.holds import pause, unpause


class Command(BaseCommand):
    help = "Pause a kind in one tenant, or end the pause. What runs goes on to its end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind")
        parser.add_argument("--tenant", required=True, help="its slug")
        parser.add_argument(
            "--reason", default="", help="kept with the pause and its audit entry"
        )
        parser.add_argument("--end", action="store_true", help="end the pause")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        act = Act(tenant_called(options["tenant"]), actor(), reason=options["reason"])
        kind = options["kind"]
        facts: dict[str, Any] = {"kind": kind, "tenant": act.tenant.slug}
        if options["end"]:
            facts |= {"paused": False, "jobs_freed": unpause(kind, act)}
        else:
            facts |= {"paused": True, "jobs_held": pause(kind, act)}
        (say_json if options["json"] else say_facts)(self.stdout, facts)
