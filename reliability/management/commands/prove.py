"""`manage.py prove`: send a day over and over, kill workers, and judge every replay."""

import json
import random
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from reliability.embedded.errors import AlreadyRunning, EmbeddedUnavailable
from reliability.management import proving
from reliability.management.printing import say_json
from reliability.management.progress import say
from reliability.management.recording import record_proof
from reliability.management.trial import Terms, run_trial
from reliability.proof.day_file import DayRefused
from reliability.proof.plan import Fault


class Command(BaseCommand):
    help = "Prove on throw-away servers that every event takes effect once, workers killed or not."
    requires_system_checks = ()  # there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--events", type=int, default=300, help="distinct events (300)")
        parser.add_argument("--replays", type=int, default=3, help="times the day is sent (3)")
        parser.add_argument("--kills", type=int, default=10, help="SIGKILLs at workers (10)")
        parser.add_argument(
            "--faults", default="", help=f"all, or some of {','.join(Fault)} (none)"
        )
        parser.add_argument("--file", default="", help="events from a file of JSON lines")
        parser.add_argument(
            "--app",
            action="store_true",
            help="work them by the handlers that RELIABILITY_HANDLERS and the installed apps bring",
        )
        parser.add_argument("--seed", type=int, help="of the day and the kills (random)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--no-key-check",
            action="store_true",
            help="let the provider ignore keys: the proof must then fail",
        )
        parser.add_argument("--logs", type=Path, help="copy the processes' logs here")
        parser.add_argument(
            "--trial", type=Path, help="(inside) play, and write what was found here"
        )

    def handle(self, **options: Any) -> None:
        """Judge in the outer process, play in the one that runs over the servers."""
        terms = _terms(options)
        if options["trial"]:
            found = run_trial(Path(settings.DATA_DIR), terms)
            options["trial"].write_text(json.dumps(found, default=str))
            return
        started_at = timezone.now()
        try:
            proof = proving.prove(terms, logs=options["logs"])
        except (AlreadyRunning, DayRefused, EmbeddedUnavailable, proving.TrialEnded) as err:
            raise CommandError(str(err)) from None
        if options["json"]:
            say_json(self.stdout, proof.facts())
        else:
            self.stdout.write(proof.words())
        say(record_proof(proof, started_at))
        sys.exit(0 if proof.ok else 1)


def _terms(options: dict[str, Any]) -> Terms:
    for name, least in (("events", 10), ("replays", 1), ("kills", 0)):
        if options[name] < least:
            raise CommandError(f"--{name} must be {least} or more.")
    if options["app"] and not options["file"]:
        raise CommandError("--app needs --file: the invented day is for handlers of its own.")
    return Terms(
        seed=random.randrange(10**6) if options["seed"] is None else options["seed"],
        events=options["events"],
        replays=options["replays"],
        kills=options["kills"],
        key_check=not options["no_key_check"],
        faults=_faults(options["faults"]),
        file=str(Path(options["file"]).absolute()) if options["file"] else "",
        app=options["app"],
    )


def _faults(text: str) -> tuple[Fault, ...]:
    """Read the faults asked for, each once, in an order of their own."""
    named = list(Fault) if text == "all" else [word for word in text.split(",") if word]
    if unknown := sorted(set(named) - set(Fault)):
        raise CommandError(
            f"--faults knows no {', '.join(unknown)}; it knows all, {', '.join(Fault)}."
        )
    return tuple(fault for fault in Fault if fault in named)
