"""What people write down about a cause: who looks into it, what is known, until when it is mute."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.models import AuditEntry, LetterGroup, Source
from reliability.work.dead_letters import Act


@dataclass(frozen=True)
class Cause:
    """What letters of one sort have in common, for one kind of one source."""

    source: Source
    kind: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Note:
    """``muted_until``: it sorts last until then; ``None`` for not muted."""

    owner: str = ""
    text: str = ""
    ticket: str = ""
    muted_until: datetime | None = None


def write_note(cause: Cause, note: Note, act: Act) -> LetterGroup:
    """Replace what is known of a cause. It stays when the cause's letters are requeued."""
    with transaction.atomic(using=sql.database().alias):
        group, _ = LetterGroup.objects.update_or_create(
            tenant=act.tenant,
            source=cause.source,
            kind=cause.kind,
            fingerprint=cause.fingerprint,
            defaults={
                "owner": note.owner, "note": note.text, "ticket": note.ticket,
                "muted_until": note.muted_until, "changed_at": timezone.now(),
                "changed_by": act.actor,
            },
        )  # fmt: skip
        AuditEntry.objects.record(
            act.tenant, actor=act.actor, user_id=act.user_id, act="note on cause",
            about="cause", about_id=str(group.public_id), source=cause.source.slug,
            kind=cause.kind, owner=note.owner, ticket=note.ticket,
            muted_until=note.muted_until.isoformat() if note.muted_until else None,
        )  # fmt: skip
    return group
