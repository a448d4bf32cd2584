"""What providers could not deliver lately and was fetched: provisional until the statement comes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.parts import number
from reliability.models import ProvisionalCheck, Source

RECENT = timedelta(hours=24)


@dataclass(frozen=True)
class Provisional:
    """One source: its newest check that brought anything, or else its newest one."""

    source: Source
    said: str
    at: datetime
    failing: bool


def provisional(request: OperatorRequest) -> list[Provisional]:
    """Return each source that was asked within a day, by name, with what came of it."""
    checks = for_tenant(request, ProvisionalCheck.objects.since(request.now - RECENT))
    by_source: dict[Source, list[ProvisionalCheck]] = {}
    for check in checks.select_related("source").order_by("source__slug", "-asked_at", "-pk"):
        by_source.setdefault(check.source, []).append(check)
    return [_told(source, of_source) for source, of_source in by_source.items()]


def _told(source: Source, checks: list[ProvisionalCheck]) -> Provisional:
    """Tell a failure first: while the provider cannot be asked, nothing else is known."""
    newest = checks[0]
    if newest.why:
        said = f"could not be asked: {newest.why}"
        return Provisional(source, said, newest.asked_at, failing=True)
    shown = next((check for check in checks if check.accepted), newest)
    events = f"event{'' if shown.accepted == 1 else 's'}"
    said = (
        f"{number(shown.accepted)} undelivered {events} fetched"
        if shown.accepted
        else "nothing undelivered"
    )
    return Provisional(source, said, shown.asked_at, failing=False)
