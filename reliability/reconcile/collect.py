"""Statements that come by themselves: from every source's folder, and from providers' APIs."""

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from django.utils import timezone

from reliability.errors import AddressRefused, NoAnswer, TryAgain
from reliability.models import Run, Source, Statement, StatementFolder
from reliability.models.sealing import CannotUnseal
from reliability.reconcile import local_day
from reliability.reconcile.fetched import STATEMENTS, fetch_statement, may_fetch
from reliability.reconcile.folders import Looked, look_into
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.providers.provided import CannotFetch
from reliability.reconcile.statement import import_statement

logger = logging.getLogger(__name__)

JOB = "collect"
BY = "the provider's API"
SETTLED = timedelta(hours=2)
"""How long after a day's end its rows are asked for: some are listed late."""
DAYS_BACK = 3
FOLDERS_MAX = 500


@dataclass(frozen=True)
class Collected:
    """What one pass brought in, over all sources."""

    taken: int = 0
    seen_again: int = 0
    refused: int = 0
    waiting: int = 0
    fetched: int = 0
    failed: int = 0


def collect(trigger: str) -> Collected:
    """Look into every folder, ask for what APIs list, and record the pass as a ``Run``.

    A folder or provider that fails stops no other; it is named on the reconciliation page.
    """
    started_at = timezone.now()
    folders = StatementFolder.objects.select_related("source").order_by("looked_at", "pk")
    looks = [look_into(folder) for folder in folders[:FOLDERS_MAX]]
    answers = [_fetched(source, day) for source, day in _due(started_at)]
    collected = Collected(
        **_sums(looks),
        fetched=sum(answers),
        failed=sum(bool(look.why) for look in looks) + answers.count(False),
    )
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(),
        ok=not collected.failed, facts=asdict(collected),
    )  # fmt: skip
    return collected


def _sums(looks: list[Looked]) -> dict[str, int]:
    names = ("taken", "seen_again", "refused", "waiting")
    return {name: sum(getattr(look, name) for look in looks) for name in names}


def _due(now: datetime) -> Iterator[tuple[Source, date]]:
    """Yield each recent day that is over, has no statement, and that an API lists."""
    sources = Source.objects.filter(internal=False, statement_format__in=STATEMENTS)
    for source in sources.exclude(statement_kinds=[]).order_by("pk"):
        if not may_fetch(source):
            continue
        today = local_day.day_of(now, source.zone)
        for back in range(DAYS_BACK, 0, -1):
            day = today - timedelta(days=back)
            over = local_day.bounds(day, source.zone)[1] + SETTLED <= now
            began = local_day.day_of(source.created_at, source.zone) <= day
            if (
                over
                and began
                and not Statement.objects.filter(source=source, day=day).exists()
            ):
                yield source, day


def _fetched(source: Source, day: date) -> bool:
    """Fetch and read one day; the planner compares it."""
    try:
        import_statement(fetch_statement(source, day, by=BY), day)
    except (
        CannotFetch, AddressRefused, NoAnswer, CannotUnseal, StatementError, TryAgain,
    ) as error:  # fmt: skip
        logger.warning("statement_not_fetched", extra={"source": source.pk, "why": str(error)})
        return False
    return True
