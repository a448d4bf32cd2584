"""The audit entry of an act on a redrive: one an act, whatever the number of letters."""

from dataclasses import dataclass
from typing import Any

from reliability import sql
from reliability.models import AuditEntry, Redrive
from reliability.work.dead_letters import Act


@dataclass(frozen=True)
class _Digest:
    letters: int
    digest: str


def record(redrive: Redrive, act: Act, name: str, **facts: Any) -> None:
    """Write the entry, with the number of letters still to requeue and their digest.

    In the caller's transaction, so that the act and its entry commit together.
    """
    [rest] = sql.rows_planned_anew("digest_members", _Digest, redrive_id=redrive.pk)
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="redrive",
        about_id=str(redrive.public_id), reason=act.reason, number=redrive.pk,
        count=rest.letters, digest=rest.digest, asked=redrive.asked, **facts,
    )  # fmt: skip
