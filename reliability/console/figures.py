"""Numbers of the console: each is computed from rows and says when it stopped counting."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from reliability.conf import conf


@dataclass(frozen=True)
class Counted:
    """A number of rows; ``more`` when counting stopped at the limit."""

    number: int
    more: bool = False


def counted(rows: "QuerySet[Any]") -> Counted:
    """Count rows, but never past ``conf().count_max``: a hot list has no exact total."""
    limit = conf().count_max
    number = rows.order_by()[: limit + 1].count()
    return Counted(min(number, limit), number > limit)
