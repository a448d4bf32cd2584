"""How statements come by themselves: folders that are looked into, and imports under way."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q

from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.parts import number
from reliability.models import FolderFile, Reading, StatementFolder

ALIVE = timedelta(minutes=2)
"""A reading that was not heard of for longer has died with its process."""
REFUSED_MAX = 20


@dataclass(frozen=True)
class FolderState:
    """One source's folder as the last look left it."""

    folder: StatementFolder
    said: str
    at: datetime | None
    failing: bool
    refused: list[FolderFile]


def folders(request: OperatorRequest) -> list[FolderState]:
    """Return the tenant's folders by source, each with what was seen and what was refused."""
    rows = for_tenant(request, StatementFolder.objects.all()).select_related("source")
    counted = rows.annotate(
        taken=Count("files", filter=Q(files__taken_at__isnull=False)),
        waiting=Count("files", filter=Q(files__taken_at=None)),
    )
    files = for_tenant(request, FolderFile.objects.exclude(refused="")).order_by("-taken_at")
    refused = list(files[:REFUSED_MAX])
    return [_state(folder, refused) for folder in counted.order_by("source__slug")]


def _state(folder: StatementFolder, refused: list[FolderFile]) -> FolderState:
    at = folder.failing_since or folder.looked_at
    own = [file for file in refused if file.folder_id == folder.pk]
    return FolderState(folder, _said(folder), at, bool(folder.why), own)


def _said(folder: StatementFolder) -> str:
    if folder.why:
        return f"{folder.why}, since"
    if folder.looked_at is None:
        return "not looked into yet"
    taken, waiting = (getattr(folder, name) for name in ("taken", "waiting"))
    more = f", {number(waiting)} still being written" if waiting else ""
    return f"{number(taken)} taken{more}, last look"


def readings(request: OperatorRequest) -> Iterable[Reading]:
    """Return the imports under way, with the lines each has read."""
    since = request.now - ALIVE
    rows = for_tenant(request, Reading.objects.filter(updated_at__gte=since))
    return rows.order_by("started_at")[:REFUSED_MAX]
