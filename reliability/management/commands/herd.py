"""`manage.py herd`: what jitter does to clients that failed together, and what it does not."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.management.printing import say_json, say_table
from reliability.policy import ATTEMPTS_MAX, Backoff
from reliability.work.herd import BUCKET, Stampede, mean_stampede

FIRST, CAP = timedelta(milliseconds=200), timedelta(seconds=30)
RETURNS_MAX = 5_000_000
"""Clients times attempts times seeds: some ten seconds of work."""


class Command(BaseCommand):
    help = "Simulate clients that fail together and come back, without and with full jitter."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--clients", type=int, default=200)
        parser.add_argument(
            "--attempts", type=int, default=5, help="how often each comes back"
        )
        parser.add_argument(
            "--seed", type=int, help="one seed only, instead of the mean of 100"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        clients, attempts, seed = options["clients"], options["attempts"], options["seed"]
        seeds = range(100) if seed is None else range(seed, seed + 1)
        _bound(clients, attempts, seeds)
        full = Backoff(first=FIRST, cap=CAP, attempts=attempts + 1)
        plain = replace(full, jitter="none")
        without = mean_stampede(plain, clients=clients, seeds=range(1))
        jittered = mean_stampede(full, clients=clients, seeds=seeds)
        if options["json"]:
            return say_json(self.stdout, _facts(options, seeds, without, jittered))
        said = f"{clients} clients come back {attempts} times"
        say_table(self.stdout, said, [_row("none", without), _row("full", jittered)])
        return self.stdout.write(_honestly(without, jittered))


def _bound(clients: int, attempts: int, seeds: range) -> None:
    if clients < 1 or not 1 <= attempts < ATTEMPTS_MAX:
        raise CommandError(f"Give at least 1 client and 1 to {ATTEMPTS_MAX - 1} attempts.")
    if clients * attempts * len(seeds) > RETURNS_MAX:
        raise CommandError(
            f"That is over {RETURNS_MAX:,} returns: give fewer clients or attempts, or --seed 0."
        )


def _row(jitter: str, found: Stampede) -> dict[str, Any]:
    return {
        "jitter": jitter,
        f"peak_in_{_milliseconds(BUCKET)}_ms": round(found.peak, 1),
        "windows": round(found.windows, 1),
    }


def _honestly(without: Stampede, jittered: Stampede) -> str:
    lower = round(100 * (1 - jittered.peak / without.peak))
    return (
        f"Jitter lowers the peak by {lower} %; what it buys is {jittered.windows:.0f} windows "
        f"instead of {without.windows:.0f}."
    )


def _facts(
    options: dict[str, Any], seeds: range, without: Stampede, jittered: Stampede
) -> dict[str, Any]:
    return {
        "clients": options["clients"],
        "attempts": options["attempts"],
        "seeds": len(seeds),
        "bucket_ms": _milliseconds(BUCKET),
        "without_jitter": asdict(without),
        "full_jitter": asdict(jittered),
    }


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
