"""Looking into folders for statements: finished files are kept, read and compared, none is changed."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice

from django.utils import timezone

from reliability.conf import conf
from reliability.errors import TryAgain
from reliability.models import Artefact, FolderFile, Statement, StatementFolder
from reliability.reconcile.artefact import receive
from reliability.reconcile.day import NothingToCompare
from reliability.reconcile.folder_names import day_of_name
from reliability.reconcile.folder_place import (
    FolderRefused,
    Place,
    Seen,
    listed,
    open_place,
    opened,
)
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.statement import Refused, import_statement

logger = logging.getLogger(__name__)

BY = "the folder"
PIECE_BYTES = 1024 * 1024
MEMORY_BYTES_MAX = 8 * PIECE_BYTES


@dataclass(frozen=True)
class Looked:
    """What one look into one folder did; ``why`` says why it could not be read."""

    taken: int = 0
    seen_again: int = 0
    refused: int = 0
    waiting: int = 0
    """Files that may still be written: they are taken once a later look finds them unchanged."""
    why: str = ""


def look_into(folder: StatementFolder, *, at_once: bool = False) -> Looked:
    """Take the finished files of a folder: bytes first, then statement and compare.

    A file is finished when size and time of change have been the same for
    ``conf().folder_settled``, or ``at_once`` when a person says so. At most
    ``conf().folder_takes_max`` are taken, oldest day first. A folder that cannot be read is
    marked, which an alarm looks at. Nothing is deleted, moved or written there.
    """
    now = timezone.now()
    try:
        with _connected(folder.url) as place:
            files = [
                _noted(folder, one, now) for one in listed(place) if _is_ours(folder, one)
            ]
            looked = _taken(folder, place, _finished(files, now, at_once=at_once))
    except FolderRefused as refused:
        looked = Looked(why=str(refused))
    _mark(folder, looked.why, now)
    waiting = FolderFile.objects.filter(folder=folder, taken_at=None).count()
    return Looked(looked.taken, looked.seen_again, looked.refused, waiting, looked.why)


@contextmanager
def _connected(url: str) -> Iterator[Place]:
    place = open_place(url)
    try:
        yield place
    finally:
        place.end()


def _is_ours(folder: StatementFolder, seen: Seen) -> bool:
    return day_of_name(folder.pattern, seen.name) is not None


def _noted(folder: StatementFolder, seen: Seen, now: datetime) -> tuple[FolderFile, Seen]:
    """Remember how a file stands; one that changed since has to settle anew."""
    row, made = FolderFile.objects.get_or_create(
        folder=folder, name=seen.name,
        defaults={"tenant_id": folder.tenant_id, "size_bytes": seen.size_bytes,
                  "modified": seen.modified, "since": now},
    )  # fmt: skip
    if not made and (row.size_bytes, row.modified) != (seen.size_bytes, seen.modified):
        row.size_bytes, row.modified, row.since = seen.size_bytes, seen.modified, now
        row.taken_at, row.refused = None, ""
        row.save(update_fields=["size_bytes", "modified", "since", "taken_at", "refused"])
    return row, seen


def _finished(
    files: list[tuple[FolderFile, Seen]], now: datetime, *, at_once: bool
) -> Iterator[tuple[FolderFile, Seen]]:
    settled = now - conf().folder_settled
    due = (
        (row, seen)
        for row, seen in sorted(files, key=lambda one: one[0].name)
        if row.taken_at is None and (at_once or row.since <= settled)
    )
    return islice(due, conf().folder_takes_max)


def _taken(
    folder: StatementFolder, place: Place, files: Iterator[tuple[FolderFile, Seen]]
) -> Looked:
    taken = seen_again = refused = 0
    unreadable = ""
    for row, seen in files:
        try:
            artefact = _kept(folder, place, seen)
            why = _counted(folder, artefact, day_of_name(folder.pattern, seen.name))
        except StatementError as error:
            artefact, why = None, f"{seen.name}: {error}"
        except TryAgain as error:
            logger.info("folder_waits", extra={"folder": folder.pk, "why": str(error)})
            break
        except FolderRefused as error:
            row.since = timezone.now()
            row.save(update_fields=["since"])
            unreadable = unreadable or str(error)
            continue
        row.taken_at, row.artefact, row.refused = timezone.now(), artefact, why
        row.save(update_fields=["taken_at", "artefact", "refused"])
        taken += 1
        seen_again += bool(artefact and artefact.seen_again)
        refused += bool(why)
    return Looked(taken, seen_again, refused, why=unreadable)


def _kept(folder: StatementFolder, place: Place, seen: Seen) -> Artefact:
    """Copy the bytes once, then keep them: what is hashed and what is stored are the same."""
    if seen.size_bytes > conf().statement_bytes_max:
        rule = f"the file has more than {conf().statement_bytes_max:,} bytes"
        raise StatementError(0, rule, "give one day's statement, not an archive")
    with (
        tempfile.SpooledTemporaryFile(MEMORY_BYTES_MAX) as copy,
        opened(place, seen) as stream,
    ):
        while piece := stream.read(PIECE_BYTES):
            copy.write(piece)
            if copy.tell() > seen.size_bytes:
                raise FolderRefused(f"{seen.name} grew while it was read: it is not finished")
        return receive(folder.source, name=seen.name, content=copy, by=BY)  # type: ignore[arg-type]


def _counted(folder: StatementFolder, artefact: Artefact, day: date | None) -> str:
    """Read and compare a kept file; return why it was refused, or nothing."""
    if day is None:
        return ""
    known = Statement.objects.filter(artefact=artefact, day=day)
    if artefact.seen_again and known.exists():
        return ""
    read = import_statement(artefact, day)
    if isinstance(read, Refused):
        return read.sentence
    try:
        compare_onwards(folder.source, day, by=BY)
    except NothingToCompare as error:
        logger.info("folder_kept", extra={"folder": folder.pk, "why": str(error)})
    return ""


def _mark(folder: StatementFolder, why: str, now: datetime) -> None:
    """Remember when the folder was looked into, and since when it cannot be read."""
    folder.looked_at, folder.why = now, why
    folder.failing_since = (folder.failing_since or now) if why else None
    folder.save(update_fields=["looked_at", "why", "failing_since"])
    if why:
        logger.warning("folder_unreadable", extra={"folder": folder.pk, "why": why})
