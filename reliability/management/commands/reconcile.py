"""`manage.py reconcile`: give a day its statement and compare it."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.errors import AddressRefused, NoAnswer, TryAgain
from reliability.management.asking import actor, one_of, tenant_called
from reliability.management.printing import amount, say_facts, say_json, say_table
from reliability.management.progress import reading_bar
from reliability.models import Artefact, Discrepancy, Report, Source, StatementFolder
from reliability.reconcile.day import NothingToCompare
from reliability.reconcile.fetched import fetch_statement
from reliability.reconcile.folders import look_into
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.providers.provided import CannotFetch
from reliability.reconcile.statement import Refused, import_statement, receive

AGREES, DISAGREES, UNUSABLE = 0, 1, 2
LISTED_MAX = 200


class Command(BaseCommand):
    help = (
        "Compare one local day of a source with its provider's statement. "
        "Exit code 0: nothing open; 1: open discrepancies; 2: incomplete, absent or refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--source", required=True, metavar="SLUG")
        parser.add_argument("--day", type=date.fromisoformat, help="YYYY-MM-DD")
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--file", type=Path, help="the day's statement; kept and hashed")
        ways.add_argument("--fetch", action="store_true", help="ask the provider's API for it")
        ways.add_argument("--folder", action="store_true",
                          help="look into the source's folder now; needs no day")  # fmt: skip
        parser.add_argument("--at-once", action="store_true",
                            help="with --folder: take files that were not seen before, too")  # fmt: skip
        parser.add_argument("--tenant", metavar="SLUG", help="where two have such a source")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        source = _source(options["source"], options["tenant"])
        day, as_json = options["day"], options["json"]
        if options["folder"]:
            self._look(source, at_once=options["at_once"], as_json=as_json)
            return
        if day is None:
            raise CommandError("Say which --day, or look into the --folder.")
        if refused := self._given(source, day, options):
            self._say({"refused": refused}, as_json=as_json)
            sys.exit(UNUSABLE)
        try:
            report = compare_onwards(source, day, by=actor())
        except (NothingToCompare, StatementError, TryAgain) as error:
            self._say({"refused": str(error)}, as_json=as_json)
            sys.exit(UNUSABLE)
        found = told(report)
        self._say(found, as_json=as_json)
        sys.exit(_code(report, found))

    def _look(self, source: Source, *, at_once: bool, as_json: bool) -> None:
        folder = StatementFolder.objects.filter(source=source).select_related("source").first()
        if folder is None:
            raise CommandError(f"{source.slug} has no folder: see `manage.py folder`.")
        looked = look_into(folder, at_once=at_once)
        self._say({"source": source.slug, **asdict(looked)}, as_json=as_json)
        if looked.why or looked.refused:
            sys.exit(UNUSABLE)

    def _given(self, source: Source, day: date, options: Mapping[str, Any]) -> str:
        """Give the day its statement, from wherever it comes; return why it was refused."""
        if options["file"]:
            return self._give(source, options["file"], day)
        if not options["fetch"]:
            return ""
        try:
            artefact = fetch_statement(source, day, by=actor())
        except (CannotFetch, AddressRefused, NoAnswer, StatementError) as error:
            return str(error)
        return self._read(artefact, day)

    def _give(self, source: Source, path: Path, day: date) -> str:
        """Keep and read the file; return why it was refused, or nothing."""
        try:
            with path.open("rb") as stream:
                artefact = receive(source, name=path.name, content=stream, by=actor())
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        except StatementError as error:
            return f"{path.name}: {error}"
        return self._read(artefact, day)

    def _read(self, artefact: Artefact, day: date) -> str:
        try:
            with reading_bar(artefact.name) as told:
                read = import_statement(artefact, day, told=told)
        except TryAgain as error:
            return str(error)
        return read.sentence if isinstance(read, Refused) else ""

    def _say(self, found: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            say_json(self.stdout, found)
            return
        tables = {name: rows for name, rows in found.items() if isinstance(rows, list)}
        facts = {name: value for name, value in found.items() if name not in tables}
        say_facts(self.stdout, {name: _words(value) for name, value in facts.items()})
        for name, rows in tables.items():
            say_table(self.stdout, name.replace("_", " ").capitalize(), rows)


def _source(slug: str, tenant: str | None) -> Source:
    known = Source.objects.filter(internal=False).order_by("slug", "tenant_id")
    if tenant:
        known = known.filter(tenant=tenant_called(tenant))
    one_of("source", slug, (source.slug for source in known[:50]))
    found = list(known.filter(slug=slug).select_related("tenant")[:2])
    if len(found) > 1:
        raise CommandError(f"Two tenants have a source {slug!r}: say which with --tenant.")
    return found[0]


def told(report: Report) -> dict[str, Any]:
    """Return what a report says, as one JSON object."""
    discrepancies = Discrepancy.objects.open().filter(
        source=report.source, last_day=report.day
    )
    return {
        "source": report.source.slug,
        "tenant": report.source.tenant.slug,
        "day": str(report.day),
        "version": report.version,
        "report": str(report.public_id),
        "completeness": report.completeness,
        "counts": report.counts,
        "open": discrepancies.count(),
        "gates": [
            {name: gate[name] for name in ("name", "verdict", "sentence")}
            for gate in report.gates
        ],
        "bridge": [_bridge_row(name, walk) for name, walk in report.bridge.items()],
        "discrepancies": [
            {
                "reference": one.reference,
                "class": one.operation_class,
                "verdict": one.verdict,
                "cause": one.cause,
                "status": one.status,
                "theirs": amount(one.their_minor, one.currency, one.exponent),
                "ours": amount(one.our_minor, one.currency, one.exponent),
            }
            for one in discrepancies.order_by("pk")[:LISTED_MAX]
        ],
    }


def _bridge_row(name: str, walk: Mapping[str, Any]) -> dict[str, Any]:
    currency, exponent = name.partition("/")[0], walk["exponent"]
    steps = {
        verdict: amount(step["minor"], currency, exponent)
        for verdict, step in walk["buckets"].items()
        if step["minor"]
    }
    return {
        "currency": name,
        "theirs": amount(walk["theirs_minor"], currency, exponent),
        "ours": amount(walk["ours_minor"], currency, exponent),
        "steps": ", ".join(f"{verdict} {step}" for verdict, step in steps.items()),
    }


def _words(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {n}" for name, n in value.items())
    return value


def _code(report: Report, found: Mapping[str, Any]) -> int:
    if report.completeness not in Report.JUDGED:
        return UNUSABLE
    return DISAGREES if found["open"] else AGREES
