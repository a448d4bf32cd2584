"""What is missing on a day, grouped by why: one outage is one line, however much it cost."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min, OuterRef, Subquery, Sum

from reliability.console.compared import CAUSES
from reliability.console.parts import money
from reliability.models import DeadLetter, Report, Verdict

GROUPS_MAX = 20


@dataclass(frozen=True)
class Group:
    """Missing events of one cause, error and currency."""

    words: str
    error: str
    count: int
    worth: str
    first: datetime | None
    last: datetime | None


def groups(report: Report) -> list[Group]:
    """Return the largest groups first."""
    letters = DeadLetter.objects.filter(job__key=OuterRef("operation__key")).order_by("-pk")
    missing = Verdict.objects.filter(report=report, verdict="missing")
    rows = (
        missing.annotate(error=Subquery(letters.values("error_type")[:1]))
        .values("cause", "error", "currency", "exponent")
        .annotate(
            n=Count("pk"),
            minor=Sum("their_minor"),
            first=Min("line__occurred_at"),
            last=Max("line__occurred_at"),
        )
        .order_by("-n")
    )
    return [
        Group(
            words=CAUSES.get(row["cause"], row["cause"]),
            error=(row["error"] or "") if row["cause"] == "in_dead_letter" else "",
            count=row["n"],
            worth=money(row["minor"], row["currency"], row["exponent"]),
            first=row["first"],
            last=row["last"],
        )
        for row in rows[:GROUPS_MAX]
    ]
