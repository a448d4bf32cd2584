"""Edit and requeue: a new version of a body beside the original, unsigned, for its next round."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.handlers import NotApplied
from reliability.models import Attempt, Body, BodyEdit, DeadLetter, ProcessedKey
from reliability.work.dead_letters import Act, Moved, Refusal, Seen, requeue
from reliability.work.evidence import evidence_of

MARK = "Reliability-Edited"
"""Header of an edited body: its version. What follows it was written by a person, unsigned."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A body as a person rewrote it. ``base_id`` is the body they saw; ``changed`` are pointers."""

    base_id: int
    raw: bytes
    changed: Sequence[str]
    new_generation: bool = False
    """Whether the effect goes out under a new key: the provider refused the old one for good."""


class _Undone(Exception):
    """The letter did not move: nothing of the edit may stay."""

    def __init__(self, moved: Moved) -> None:
        super().__init__(moved)
        self.moved = moved


def edit_and_requeue(seen: Seen, act: Act, edit: Edit) -> Moved:
    """Keep the edit as the next version and give the letter another round on it, in 10 s.

    The original stays as received; handlers are told by the header ``Reliability-Edited``.
    ``act.reason`` is required. Raises ValueError for an edit without a reason or a change, or
    larger than ``conf().edited_bytes_max``. A new generation is refused unless no start's fate is
    unknown and the kind's evidence says not applied.
    """
    _check(act, edit)
    letter = DeadLetter.objects.select_related("job__key").get(
        pk=seen.letter_id, tenant=act.tenant
    )
    if edit.new_generation and (why := no_new_generation(letter)):
        return Moved([], [Refusal(letter.pk, why)])
    try:
        with transaction.atomic(using=sql.database().alias):
            return _edit(letter, seen, act, edit)
    except _Undone as undone:
        return undone.moved


def no_new_generation(letter: DeadLetter) -> str:
    """Say why the effect may not go out under a new downstream key; empty where it may."""
    lost = Attempt.objects.filter(
        job=letter.job_id, outcome__in=[Attempt.Outcome.LOST, Attempt.Outcome.LATE]
    )
    unknown = DeadLetter.objects.filter(job=letter.job_id, outcome=DeadLetter.Outcome.UNKNOWN)
    if lost.exists() or unknown.exists():
        return "a start's fate is unknown, and a new key could do it twice"
    if not isinstance(evidence_of(letter.job), NotApplied):
        return "nothing shows that it was not applied under the old key"
    return ""


def _check(act: Act, edit: Edit) -> None:
    if not act.reason.strip():
        raise ValueError(
            "Say why: the reason is kept with the version and in the audit trail."
        )
    if not edit.changed:
        raise ValueError("Nothing was changed; requeue it as it is.")
    if len(edit.raw) > conf().edited_bytes_max:
        raise ValueError(f"An edited body has at most {conf().edited_bytes_max} bytes.")


def _edit(letter: DeadLetter, seen: Seen, act: Act, edit: Edit) -> Moved:
    base = Body.objects.select_for_update().filter(key=letter.job.key_id, first=True).first()
    if base is None or base.pk != edit.base_id:
        raise _Undone(Moved([], [Refusal(letter.pk, "somebody edited it since: look again")]))
    moved = requeue([seen], act, name="edit and requeue")
    if not moved.letter_ids:
        raise _Undone(moved)
    _keep(letter, act, edit, base)
    return moved


def _keep(letter: DeadLetter, act: Act, edit: Edit, base: Body) -> None:
    key = letter.job.key
    before = BodyEdit.objects.filter(body__key=key).aggregate(last=Max("number"))["last"]
    number, now = (before or 1) + 1, timezone.now()
    Body.objects.filter(pk=base.pk).update(first=False)
    body = Body.objects.create(
        tenant_id=base.tenant_id, key=key, raw=edit.raw, first=True, created_at=now,
        headers={**base.headers, MARK: str(number)},
        sha256=hashlib.sha256(edit.raw).digest(),
    )  # fmt: skip
    BodyEdit.objects.create(
        tenant_id=base.tenant_id, body=body, letter=letter, number=number,
        changed=sorted(edit.changed), actor=act.actor, user_id=act.user_id, reason=act.reason,
        created_at=now, key_before=key.downstream_key if edit.new_generation else "",
    )  # fmt: skip
    if edit.new_generation:
        ProcessedKey.objects.filter(pk=key.pk).update(
            downstream_key=_next_generation(key, number)
        )


def _next_generation(key: ProcessedKey, number: int) -> str:
    first = (
        BodyEdit.objects.filter(body__key=key)
        .exclude(key_before="")
        .order_by("number")
        .values_list("key_before", flat=True)
        .first()
    )
    return f"{first or key.downstream_key}/{number}"
