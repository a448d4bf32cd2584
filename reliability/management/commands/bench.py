"""Measure ours, the peers and the bare limit in one run, on throw-away servers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.embedded.servers import throwaway

ROOT = Path(__file__).resolve().parents[3]
SUBJECTS = ("jobs", "ingest", "reconcile", "console")


class Command(BaseCommand):
    help = (
        "Run a benchmark: jobs, ingest, reconcile or console. Needs requirements-bench.lock."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", choices=SUBJECTS)
        parser.add_argument("--rounds", type=int, default=3)
        parser.add_argument(
            "--size", type=int, help="how many jobs, requests, lines or letters"
        )
        parser.add_argument(
            "--jobs", type=int, help="console: how many jobs stand beside them"
        )
        parser.add_argument("--part", action="append", help="only this part (repeatable)")
        parser.add_argument("--json", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        script = ROOT / "benchmarks" / f"{options['subject']}.py"
        if not script.exists():
            raise CommandError(f"benchmarks/{script.name} is not part of this installation.")
        with throwaway() as addresses:
            environment = os.environ | {
                "RELIABILITY_DATA": str(addresses.folder),
                "PYTHONPATH": str(ROOT),
                "RELIABILITY_HANDLERS": "benchmarks.kinds",
            }
            ended = subprocess.run(  # noqa: S603 - our own module, words checked by argparse
                [sys.executable, "-m", "benchmarks", *_words(options)],
                env=environment, check=False,
            ).returncode  # fmt: skip
        if ended:
            sys.exit(1)


def _words(options: dict[str, Any]) -> list[str]:
    words = [options["subject"], f"--rounds={options['rounds']}"]
    words += [f"--size={options['size']}"] if options["size"] else []
    words += [f"--jobs={options['jobs']}"] if options["jobs"] else []
    words += [f"--part={part}" for part in options["part"] or []]
    return words + (["--json"] if options["json"] else [])
