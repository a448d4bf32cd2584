"""`manage.py trace KEY`: what happened to it, across the layers."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.management.asking import tenant_called
from reliability.management.printing import moment, say_facts, say_json, say_table
from reliability.management.tracing import claims_of, lines_naming, told


class Command(BaseCommand):
    help = "Tell what happened to a key, operation, job, dead letter or delivery."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", help="the text exactly as it was sent; or DL-7, or an id")
        parser.add_argument("--tenant", metavar="SLUG", help="in this tenant only")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"]) if options["tenant"] else None
        claims = [told(key) for key in claims_of(options["key"], tenant)]
        lines = lines_naming(options["key"], tenant)
        if options["json"]:
            say_json(self.stdout, {"asked": options["key"], "claims": claims, "lines": lines})
        else:
            self._tell(claims, lines)
        if not claims and not lines:
            raise CommandError(f"Nothing is known of {options['key']!r}.")

    def _tell(self, claims: list[dict[str, Any]], lines: list[dict[str, Any]]) -> None:
        for claim in claims:
            story = [one | {"at": moment(one["at"])} for one in claim["story"]]
            facts = {name: value for name, value in claim.items() if name != "story" and value}
            say_facts(self.stdout, facts)
            say_table(self.stdout, "Story (UTC)", story)
        if lines:
            say_table(self.stdout, "Statement lines", lines)
