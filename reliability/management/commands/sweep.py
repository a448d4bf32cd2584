"""`manage.py sweep`: one pass over everything that should have moved and did not."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reliability.management.printing import say_facts, say_json
from reliability.models import Run
from reliability.sweep import sweep


class Command(BaseCommand):
    help = "Make one pass of the sweep and record it; two at once are harmless."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        swept = sweep(Run.Trigger.COMMAND)
        (say_json if options["json"] else say_facts)(self.stdout, asdict(swept))
