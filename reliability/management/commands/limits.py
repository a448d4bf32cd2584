"""`manage.py limits`: how long a job of each kind can take at the very worst, and what may go wrong."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.handlers import kinds
from reliability.management.asked_policy import asked_policy, describe_policy
from reliability.management.printing import say_json, say_table
from reliability.policy import BACKGROUND, USER_FACING, Policy
from reliability.work.limits import in_words, rows_of, shipped_pace, terms

MEANING = (
    "S = waits + work (each attempt its limit) + crashes (each lease + sweep) + pickups, all upper "
    "bounds. A key must be remembered downstream for longer than S."
)


class Command(BaseCommand):
    help = (
        "Print every kind's worst case S with its terms, window, sink and risk; or a policy's."
    )
    # A window too short is refused at start; these figures say by how much.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        describe_policy(parser, first=None)
        parser.add_argument("--attempts", type=int, help="a policy of your own, with --first")
        parser.add_argument("--json", action="store_true", help="print JSON, in seconds")

    def handle(self, *_: Any, **options: Any) -> None:
        title, rows = _asked(options)
        if options["json"]:
            return say_json(self.stdout, [_cells(row, as_json=True) for row in rows])
        say_table(self.stdout, title, [_cells(row, as_json=False) for row in rows])
        return self.stdout.write(MEANING)


def _asked(options: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    if options["first"] is not None or options["attempts"] is not None:
        if options["first"] is None or options["attempts"] is None:
            raise CommandError("A policy of your own needs both --first and --attempts.")
        policy = asked_policy(options, attempts=options["attempts"])
        return "This policy", [_policy("asked for", policy)]
    found = [row for kind in kinds() for row in rows_of(kind)]
    if found:
        return f"Kinds: {len(kinds())}", found
    shipped = [_policy("BACKGROUND", BACKGROUND), _policy("USER_FACING", USER_FACING)]
    return "No kind is registered; the shipped policies", shipped


def _policy(name: str, policy: Policy) -> dict[str, Any]:
    return {"policy": name, "attempts": policy.attempts, **terms(policy, shipped_pace())}


def _cells(row: Mapping[str, Any], *, as_json: bool) -> dict[str, Any]:
    """Write durations in words, or in seconds for programs."""

    def cell(value: Any) -> Any:
        if not isinstance(value, timedelta):
            return value
        return value.total_seconds() if as_json else in_words(value)

    return {name: cell(value) for name, value in row.items()}
