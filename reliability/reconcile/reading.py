"""How far an import is, told outside its transaction: the page would see nothing of it otherwise."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from reliability import sql
from reliability.models import Artefact

logger = logging.getLogger(__name__)

Told = Callable[[int], None]
"""Hears how many lines are read so far."""
NOTE = """
INSERT INTO reliability_reading (tenant_id, artefact_id, name, lines, started_at, updated_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (artefact_id) DO UPDATE SET lines = excluded.lines, updated_at = clock_timestamp()
"""
END = "DELETE FROM reliability_reading WHERE artefact_id = %s"


@contextmanager
def noted(artefact: Artefact, told: Told | None = None) -> Iterator[Told]:
    """Yield what is to be told of an import's progress; it is kept until the import ends.

    A connection is opened with the first word, so a small file costs none. Progress that cannot
    be written is dropped: it must not end the import.
    """
    note = _Note(artefact)

    def tell(lines: int) -> None:
        note.write(lines)
        if told:
            told(lines)

    try:
        yield tell
    finally:
        note.end()


class _Note:
    """One row, written through a connection of its own."""

    def __init__(self, artefact: Artefact) -> None:
        self._artefact = artefact
        self._beside: BaseDatabaseWrapper | None = None
        self._failed = False

    def write(self, lines: int) -> None:
        artefact = self._artefact
        self._run(NOTE, artefact.tenant_id, artefact.pk, artefact.name, lines)

    def end(self) -> None:
        if self._beside is None:
            return
        self._run(END, self._artefact.pk)
        self._beside.close()

    def _run(self, text: str, *parameters: int | str) -> None:
        if self._failed:
            return
        self._beside = self._beside or sql.database().copy()
        try:
            with self._beside.cursor() as cursor:
                cursor.execute(text, parameters)
        except DatabaseError:
            self._failed = True
            logger.warning("reading_not_noted", extra={"artefact": self._artefact.pk})
