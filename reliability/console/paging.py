"""Pages by key: stable while rows come, the same cost on page 1 and page 10 000."""

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from reliability.conf import conf
from reliability.console.filters import NotUnderstood


@dataclass(frozen=True)
class Page:
    """Some rows, newest first; ``after`` continues below them, empty on the last page."""

    rows: list[Any]
    after: str
    first: bool


def paged(rows: "QuerySet[Any]", by: str, after: str = "", *, size: int | None = None) -> Page:
    """Return one page of ``rows`` ordered by ``by`` and id, both descending.

    No OFFSET and no count: a row that arrives while somebody pages neither repeats nor hides
    another (https://use-the-index-luke.com/no-offset). Raises NotUnderstood for a cursor it did
    not make.
    """
    size = size or conf().page_size
    ordered = rows.order_by(f"-{by}", "-pk")
    if after:
        ordered = below(ordered, by, *_read(rows, by, after))
    found = list(ordered[: size + 1])
    shown = found[:size]
    more = len(found) > size
    return Page(shown, _cursor(shown[-1], by) if more else "", first=not after)


def below(rows: "QuerySet[Any]", by: str, value: Any, pk: int) -> "QuerySet[Any]":
    """Choose the rows after one, in words an index on (by, id) begins to read at."""
    return rows.filter(**{f"{by}__lte": value}).filter(
        Q(**{f"{by}__lt": value}) | Q(pk__lt=pk)
    )


def _cursor(row: Any, by: str) -> str:
    value = getattr(row, by)
    return f"{value.isoformat() if hasattr(value, 'isoformat') else value}_{row.pk}"


def _read(rows: "QuerySet[Any]", by: str, after: str) -> tuple[Any, int]:
    text, _, pk = after.rpartition("_")
    try:
        return rows.model._meta.get_field(by).to_python(text), int(pk)  # noqa: SLF001 - Django's public name
    except (ValueError, ValidationError):
        raise NotUnderstood("The page asked for does not exist; begin at the first.") from None
