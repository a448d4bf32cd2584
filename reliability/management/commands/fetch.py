"""`manage.py fetch`: ask a provider for the events of some days, and take in what was missed."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from rich.progress import Progress

from reliability.claim.backlog import Recorded, TakenIn, take_in
from reliability.errors import AddressRefused, NoAnswer
from reliability.management.asking import actor, source_called, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.management.progress import events_bar
from reliability.models import AuditEntry, Source
from reliability.reconcile.providers.asking import OVERLAP
from reliability.reconcile.providers.known import EVENTS
from reliability.reconcile.providers.provided import CannotFetch


class Command(BaseCommand):
    help = "Fetch a provider's events of some time and take in those that never arrived."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--source", required=True, metavar="SLUG")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--since", required=True, metavar="DAY", help="2026-11-28, in UTC")
        parser.add_argument("--until", metavar="DAY", help="that day too; now if not given")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        source = source_called(options["source"], tenant_called(options["tenant"]))
        since = _day(options["since"])
        until = (
            _day(options["until"]) + timedelta(days=1) if options["until"] else timezone.now()
        )
        if source.scheme not in EVENTS:
            raise CommandError(
                f"{source.scheme} events cannot be fetched. Known: {', '.join(EVENTS)}."
            )
        try:
            taken = _take_in(source, since, until)
        except (CannotFetch, AddressRefused, NoAnswer) as error:
            raise CommandError(str(error)) from None
        facts = {"source": source.slug, **asdict(taken)}
        (say_json if options["json"] else say_facts)(self.stdout, facts)


def _take_in(source: Source, since: datetime, until: datetime) -> TakenIn:
    """Take in the events of a span, in the order the provider lists them."""
    total = TakenIn()
    with events_bar(source.slug) as bar:
        spanned = EVENTS[source.scheme](source, since - OVERLAP, until + OVERLAP)
        listed = _counted(spanned, bar)
        for taken in take_in(source, listed, trusted=True):
            total += taken
    with transaction.atomic():
        AuditEntry.objects.record(
            source.tenant, actor=actor(), act="fetch events", about="source",
            about_id=source.slug, since=since.isoformat(), until=until.isoformat(),
            **asdict(total),
        )  # fmt: skip
    return total


def _counted(listed: Iterator[Recorded], bar: Progress) -> Iterator[Recorded]:
    for one in listed:
        bar.advance(bar.task_ids[0])
        yield one


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise CommandError(f"{text!r} is no day: write one like 2026-11-28.") from None
