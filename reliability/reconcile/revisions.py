"""What a later file of the same day says differently, line by line."""

from dataclasses import dataclass

from reliability import sql
from reliability.conf import conf
from reliability.models import Statement


@dataclass(frozen=True)
class Changed:
    """One line that is new, gone or changed; the side without it is ``None``."""

    identity: str
    reference: str | None
    old_minor: int | None
    old_currency: str | None
    old_exponent: int | None
    new_minor: int | None
    new_currency: str | None
    new_exponent: int | None


def revision_before(statement: Statement) -> Statement | None:
    """Return the revision a statement replaced."""
    found = Statement.objects.filter(
        source_id=statement.source_id, day=statement.day, revision__lt=statement.revision
    )
    return found.order_by("-revision").first()


def revised(old: Statement, new: Statement) -> list[Changed]:
    """Return the lines that differ, in file order; at most ``conf().selection_max``."""
    return sql.rows_planned_anew(
        "revision_changes", Changed, old_id=old.pk, new_id=new.pk, limit=conf().selection_max
    )
