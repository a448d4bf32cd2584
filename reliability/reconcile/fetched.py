"""A day's statement from the provider's own API, kept as a file like any other."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from types import MappingProxyType

from reliability.models import ApiCredential, Artefact, Source
from reliability.reconcile import local_day
from reliability.reconcile.artefact import receive
from reliability.reconcile.providers import stripe_statement
from reliability.reconcile.providers.provided import CannotFetch

Pages = Callable[[Source, datetime, datetime], Iterator[bytes]]
STATEMENTS: Mapping[str, Pages] = MappingProxyType({"stripe-api-json": stripe_statement.pages})
"""Statement format to who lists a span in it."""
MEMORY_BYTES_MAX = 8 * 1024 * 1024


def may_fetch(source: Source) -> bool:
    """Tell whether the source's statements are listed by an API it has a credential for."""
    listed = source.statement_format in STATEMENTS
    return listed and ApiCredential.objects.filter(source=source).exists()


def fetch_statement(source: Source, day: date, *, by: str) -> Artefact:
    """Ask the provider for a local day's rows and keep the answer; nothing is compared yet.

    The same rows again are the same bytes: ``seen_again``. Raises ``CannotFetch``,
    ``AddressRefused``, ``NoAnswer``, and ``StatementError`` for more bytes than a file may have.
    """
    pages = STATEMENTS.get(source.statement_format)
    if pages is None:
        known = ", ".join(STATEMENTS)
        raise CannotFetch(
            f"{source.slug} has statements in {source.statement_format or 'no format'}, which no "
            f"API lists; known: {known}"
        )
    starts, ends = local_day.bounds(day, source.zone)
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES_MAX) as kept:
        for line in pages(source, starts, ends):
            kept.write(line)
        name = f"{source.slug}-{day}.jsonl"
        return receive(source, name=name, content=kept, by=by)  # type: ignore[arg-type]
