"""Files as received: hashed, kept in parts before anybody parses them, read back as a stream."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from tempfile import TemporaryFile
from typing import BinaryIO

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.models import Artefact, Source
from reliability.reconcile.formats.base import StatementError

PART_BYTES = 1024 * 1024
NAME_CHARACTERS_MAX = 200
COPY_PARTS = """
COPY reliability_artefactpart (tenant_id, artefact_id, number, content) FROM STDIN (FORMAT BINARY)
"""
COPY_BACK = """
COPY (SELECT content FROM reliability_artefactpart WHERE artefact_id = %s ORDER BY number)
TO STDOUT (FORMAT BINARY)
"""


def receive(
    source: Source, *, name: str, content: bytes | BinaryIO, by: str, day: date | None = None
) -> Artefact:
    """Keep a file's bytes; the same bytes again are the same artefact, ``seen_again``.

    A stream must be seekable: it is read twice, once to hash it. Raises ``StatementError`` for
    a file over ``conf().statement_bytes_max``, of which nothing is kept.
    """
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    digest, size_bytes = _measured(stream)
    with transaction.atomic(using=sql.database().alias):
        artefact, made = Artefact.objects.get_or_create(
            source=source,
            sha256=digest,
            defaults={
                "tenant_id": source.tenant_id,
                "size_bytes": size_bytes,
                "name": name[:NAME_CHARACTERS_MAX],
                "received_at": timezone.now(),
                "received_by": by,
                "day": day,
            },
        )
        if made:
            _keep(artefact, stream)
    artefact.seen_again = not made
    return artefact


def _measured(stream: BinaryIO) -> tuple[bytes, int]:
    digest, size_bytes = hashlib.sha256(), 0
    for part in _parts(stream):
        digest.update(part)
        size_bytes += len(part)
        if size_bytes > conf().statement_bytes_max:
            rule = f"the file has more than {conf().statement_bytes_max:,} bytes"
            raise StatementError(0, rule, "give one day's statement, not an archive")
    return digest.digest(), size_bytes


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    while part := stream.read(PART_BYTES):
        yield part


def _keep(artefact: Artefact, stream: BinaryIO) -> None:
    """Store the parts as the bytes they are; written out in a statement they take twice as long."""
    with sql.copying(COPY_PARTS) as copy:
        copy.set_types(["int8", "int8", "int4", "bytea"])
        for number, part in enumerate(_parts(stream)):
            copy.write_row((artefact.tenant_id, artefact.pk, number, part))


@contextmanager
def opened(artefact: Artefact) -> Iterator[BinaryIO]:
    """Yield the artefact's bytes as a seekable stream; they lie in a nameless file meanwhile.

    Nothing more is asked of the database while it is read, so that lines can be copied there.
    """
    with TemporaryFile() as stream:
        with sql.copying(COPY_BACK, [artefact.pk]) as copy:
            copy.set_types(["bytea"])
            for (part,) in copy.rows():
                stream.write(part)
        stream.seek(0)
        yield stream
