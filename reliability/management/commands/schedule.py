"""`manage.py schedule`: a policy's waits one by one, their sum, and the load they spare."""

from datetime import timedelta
from itertools import accumulate
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reliability.management.asked_policy import asked_policy, describe_policy
from reliability.management.printing import say_json, say_table
from reliability.work.limits import in_words


class Command(BaseCommand):
    help = "Print a policy's waits, their sums, and the load against a retry each second."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        describe_policy(parser, first=1.0)
        parser.add_argument("--retries", type=int, default=5)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        policy = asked_policy(options, attempts=options["retries"] + 1)
        waits = policy.waits_max()
        sums = list(accumulate(waits))
        if options["json"]:
            return say_json(self.stdout, _facts(waits, sums[-1]))
        rows = [
            {
                "retry": n,
                "waits_at_most": in_words(wait),
                "since_the_first_failure": in_words(so_far),
                "on_average_with_full_jitter": in_words(so_far / 2),
            }
            for n, (wait, so_far) in enumerate(zip(waits, sums, strict=True), 1)
        ]
        say_table(self.stdout, f"{in_words(sums[-1])} in all", rows)
        return self.stdout.write(_load(len(waits), sums[-1]))


def _each_second(total: timedelta) -> int:
    return max(1, round(total.total_seconds()))


def _load(retries: int, total: timedelta) -> str:
    every = _each_second(total)
    return (
        f"{retries} retries in {in_words(total)}; a retry each second would be {every:,}: "
        f"{100 * retries / every:.1f} % of that load."
    )


def _facts(waits: list[timedelta], total: timedelta) -> dict[str, Any]:
    return {
        "waits_seconds": [wait.total_seconds() for wait in waits],
        "total_seconds": total.total_seconds(),
        "retries": len(waits),
        "retries_each_second": _each_second(total),
    }
