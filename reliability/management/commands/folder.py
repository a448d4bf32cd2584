"""`manage.py folder`: where a source's statements are dropped, and what was seen there."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from reliability.management.asking import actor, source_called, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.models import AuditEntry, FolderFile, Source, StatementFolder
from reliability.reconcile.folder_names import pattern_error
from reliability.reconcile.folder_place import FolderRefused, folder_error, open_place


class Command(BaseCommand):
    help = "Set, show or remove the folder a source's statements are taken from."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the source")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--url", help="file:///folder, sftp://host/folder, s3://bucket/folder"
        )
        parser.add_argument("--pattern", help="such as settlement_{day}*.csv")
        parser.add_argument("--remove", action="store_true", help="look there no longer")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        source = source_called(options["slug"], tenant_called(options["tenant"]))
        if options["remove"]:
            _remove(source)
        elif options["url"] or options["pattern"]:
            _set(source, options["url"] or "", options["pattern"] or "")
        (say_json if options["json"] else say_facts)(self.stdout, _facts(source))


def _set(source: Source, url: str, pattern: str) -> None:
    if not (url and pattern):
        raise CommandError("A folder needs both --url and --pattern.")
    if why := folder_error(url) or pattern_error(pattern):
        raise CommandError(f"{why[0].upper()}{why[1:]}.")
    try:
        open_place(url).end()
    except FolderRefused as refused:
        raise CommandError(f"{refused}.") from None
    if not source.statement_format:
        raise CommandError(f"{source.slug} has no statement format to read its files with.")
    with transaction.atomic():
        StatementFolder.objects.filter(source=source).delete()
        StatementFolder.objects.create(
            tenant_id=source.tenant_id, source=source, url=url, pattern=pattern,
            created_at=timezone.now(), created_by=actor(),
        )  # fmt: skip
        _record(source, "set folder", url=url, pattern=pattern)


def _remove(source: Source) -> None:
    with transaction.atomic():
        if StatementFolder.objects.filter(source=source).delete()[0]:
            _record(source, "remove folder")


def _record(source: Source, act: str, **facts: Any) -> None:
    AuditEntry.objects.record(
        source.tenant, actor=actor(), act=act, about="source", about_id=source.slug, **facts
    )


def _facts(source: Source) -> dict[str, Any]:
    folder = StatementFolder.objects.filter(source=source).first()
    if folder is None:
        return {"source": source.slug, "folder": None}
    files = FolderFile.objects.filter(folder=folder)
    return {
        "source": source.slug,
        "folder": folder.url,
        "pattern": folder.pattern,
        "looked_at": folder.looked_at and folder.looked_at.isoformat(timespec="seconds"),
        "unreadable": folder.why or None,
        "taken": files.exclude(taken_at=None).count(),
        "waiting": files.filter(taken_at=None).count(),
    }
