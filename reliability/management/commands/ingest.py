"""`manage.py ingest`: take in events from a file, through the same claim as the door's."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from rich.progress import Progress

from reliability.claim.backlog import Recorded, TakenIn, read_line, take_in
from reliability.management.asking import actor, source_called, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.management.progress import bytes_bar
from reliability.models import AuditEntry, Source

LINE_BYTES_MAX = 40 * 1024 * 1024
"""A 25 MB body in base64 with its headers."""


class Command(BaseCommand):
    help = (
        "Take in events from a file of one JSON value a line: bare bodies, or recorded ones."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--source", required=True, metavar="SLUG")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--file", required=True, type=Path)
        parser.add_argument("--trusted", action="store_true",
                            help="take the file's word: no signatures are asked for")  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        source = source_called(options["source"], tenant_called(options["tenant"]))
        path: Path = options["file"]
        if not path.is_file():
            raise CommandError(f"{path} is no file.")
        taken = _take_in(source, path, trusted=options["trusted"])
        facts = {"source": source.slug, **asdict(taken)}
        (say_json if options["json"] else say_facts)(self.stdout, facts)
        if taken.refused:
            sys.exit(1)


def _take_in(source: Source, path: Path, *, trusted: bool) -> TakenIn:
    digest = hashlib.sha256()
    total = TakenIn()
    with bytes_bar(path.name, path.stat().st_size) as bar:
        lines = _lines(path, digest, bar)
        for taken in take_in(source, lines, trusted=trusted):
            total += taken
    with transaction.atomic():
        AuditEntry.objects.record(
            source.tenant, actor=actor(), act="ingest file", about="source",
            about_id=source.slug, file=path.name, sha256=digest.hexdigest(), trusted=trusted,
            **asdict(total),
        )  # fmt: skip
    return total


def _lines(path: Path, digest: Any, bar: Progress) -> Iterator[Recorded]:
    """Read the file line by line: its size does not matter, a line's does."""
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX + 1):
            if len(line) > LINE_BYTES_MAX:
                raise CommandError(f"{path}: a line is longer than {LINE_BYTES_MAX} bytes.")
            digest.update(line)
            bar.advance(bar.task_ids[0], len(line))
            if line.strip():
                yield read_line(line)
