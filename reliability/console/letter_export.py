"""Dead letters as a file: what a list shows, as CSV for spreadsheets or JSON for programs."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from reliability import sql
from reliability.console.access import OperatorRequest
from reliability.console.export import guarded
from reliability.console.filters import NotUnderstood
from reliability.console.paging import paged
from reliability.console.redact import hide
from reliability.currencies import major
from reliability.models import AuditEntry, DeadLetter
from reliability.work.dead_letters import Act

LETTERS_MAX = 100_000
"""Letters of one file: as many as one redrive takes."""
ROWS_PER_FETCH = 1_000
WORDS = (
    "letter", "died_at", "source", "kind", "key", "downstream_key", "outcome", "status",
    "error_class", "error", "reason", "cause",
)  # fmt: skip
HEAD = (*WORDS, "rounds", "amount", "currency", "id")


def begin(
    request: OperatorRequest, letters: "QuerySet[DeadLetter]", act: Act, **facts: str
) -> int:
    """Put an export on record and return how many letters it will hold.

    Raises NotUnderstood for more than ``LETTERS_MAX``: a file that was cut looks like a whole one.
    """
    many = letters.order_by()[: LETTERS_MAX + 1].count()
    if many > LETTERS_MAX:
        raise NotUnderstood(f"More than {LETTERS_MAX} letters match: narrow the list first.")
    with transaction.atomic(using=sql.database().alias):
        AuditEntry.objects.record(
            act.tenant, actor=act.actor, user_id=act.user_id, act="export",
            about="dead letters", about_id=str(request.tenant.slug), count=many, **facts,
        )  # fmt: skip
    return many


def as_csv(letters: "QuerySet[DeadLetter]") -> Iterator[bytes]:
    """Write letters, newest first; lazily. Texts are redacted, and none is taken for a formula."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(HEAD)
    for some in _pages(letters):
        writer.writerows(map(_cells, some))
        yield _taken(sheet)
    yield _taken(sheet)


def as_json(letters: "QuerySet[DeadLetter]") -> Iterator[bytes]:
    """Write letters, newest first, as one JSON object; lazily. Texts are redacted."""
    yield b'{"letters": ['
    between = ""
    for some in _pages(letters):
        for letter in some:
            yield f"{between}{json.dumps(_facts(letter), ensure_ascii=False)}".encode()
            between = ",\n"
    yield b"]}\n"


def _pages(letters: "QuerySet[DeadLetter]") -> Iterator[list[DeadLetter]]:
    """Yield pages by key: no statement outlives its page, and a letter that moves repeats none."""
    after, left = "", LETTERS_MAX
    while left > 0:
        page = paged(letters, "buried_at", after, size=min(ROWS_PER_FETCH, left))
        yield page.rows
        left -= len(page.rows)
        after = page.after
        if not after:
            return


def _taken(sheet: io.StringIO) -> bytes:
    text = sheet.getvalue()
    sheet.seek(0)
    sheet.truncate()
    return text.encode()


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "letter": f"DL-{letter.pk}",
        "died_at": letter.buried_at.isoformat(),
        "source": letter.source.slug,
        "kind": letter.kind,
        "key": letter.job.key.key,
        "downstream_key": letter.job.key.downstream_key,
        "outcome": letter.outcome,
        "status": letter.status,
        "error_class": letter.error_type,
        "error": hide(letter.message),
        "reason": hide(letter.reason),
        "cause": hide(letter.fingerprint),
        "rounds": letter.round,
        "amount_minor": letter.amount_minor,
        "currency": letter.currency,
        "exponent": letter.exponent,
        "id": str(letter.public_id),
    }


def _cells(letter: DeadLetter) -> list[str]:
    facts = _facts(letter)
    words = [guarded(str(facts[name])) for name in WORDS]
    return [
        *words,
        str(letter.round),
        major(letter.amount_minor, letter.exponent),
        letter.currency or "",
        facts["id"],
    ]
