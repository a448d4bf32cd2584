"""What a newer version of a day's report says that the one before it did not."""

from dataclasses import dataclass, field

from reliability import sql
from reliability.conf import conf
from reliability.models import Report


@dataclass(frozen=True)
class Said:
    """One verdict that only one of two versions has."""

    newer: bool
    operation_class: str | None
    reference: str | None
    verdict: str
    cause: str
    their_minor: int | None
    our_minor: int | None
    currency: str | None
    exponent: int | None


@dataclass(frozen=True)
class Change:
    """What was said of an operation before, and what is said now."""

    operation_class: str
    reference: str
    before: list[Said] = field(default_factory=list)
    after: list[Said] = field(default_factory=list)


def previous(report: Report) -> Report | None:
    """Return the version before this one."""
    versions = Report.objects.filter(
        source_id=report.source_id, day=report.day, version__lt=report.version
    )
    return versions.order_by("-version").first()


def changes(old: Report, new: Report) -> list[Change]:
    """Return what changed, operation by operation; at most ``conf().selection_max`` verdicts."""
    said = sql.rows_planned_anew(
        "version_changes", Said, old_id=old.pk, new_id=new.pk, limit=conf().selection_max
    )
    found: dict[tuple[str, str], Change] = {}
    for one in said:
        name = (one.operation_class or "", one.reference or "")
        change = found.setdefault(name, Change(*name))
        (change.after if one.newer else change.before).append(one)
    return list(found.values())
