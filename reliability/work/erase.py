"""Erase a person's data: bodies and all that came of them go, claims stay."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max, Min, Q
from django.utils import timezone

from reliability import sql
from reliability.models import (
    Attempt,
    AuditEntry,
    Body,
    BodyEdit,
    DeadLetter,
    DestinationAnswer,
    Effect,
    Job,
    ProcessedKey,
    Tenant,
)
from reliability.work.dead_letters import Act

WINDOW = 20_000
"""Bodies searched by one statement; at 2 kB each well under a second."""
SUBJECT_MIN = 4
ERASED = "(erased)"


@dataclass(frozen=True)
class Erased:
    """What was erased, or would be: events, and the open letters among them."""

    keys: int = 0
    bodies: int = 0
    letters: int = 0

    def __add__(self, other: "Erased") -> "Erased":
        return Erased(
            self.keys + other.keys, self.bodies + other.bodies, self.letters + other.letters
        )


def erase(subject: str, act: Act, *, dry_run: bool = False) -> Erased:
    """Erase every event of the tenant whose body holds ``subject``: an e-mail, an id, a name.

    Bodies, edits, results, destinations' answers and errors that speak of it go; key, operation,
    amount and fate stay, so that a repeat is still a duplicate. A job that has not run, or is
    requeued, becomes a letter that says so. ``act.reason`` is required; the audit entry holds the
    subject's digest. Backups are the deployment's to expire. ValueError for fewer than 4
    characters.
    """
    if len(subject) < SUBJECT_MIN:
        raise ValueError(f"A subject needs at least {SUBJECT_MIN} characters.")
    if not act.reason.strip():
        raise ValueError("Say why: the reason is kept in the audit trail.")
    total = Erased()
    for keys in _windows(act.tenant, subject):
        with transaction.atomic(using=sql.database().alias):
            total += _count(keys) if dry_run else _erase(keys, subject)
    if not dry_run:
        _record(act, subject, total)
    return total


@dataclass(frozen=True)
class _Key:
    key_id: int


def _windows(tenant: Tenant, subject: str) -> Iterator[list[int]]:
    """Yield the keys whose bodies hold the subject, a stretch of the table at a time."""
    ends = Body.objects.filter(tenant=tenant).aggregate(first=Min("pk"), last=Max("pk"))
    first, last = ends["first"] or 1, ends["last"] or 0
    needles = [subject.encode(), json.dumps(subject)[1:-1].encode()]
    for start in range(first, last + 1, WINDOW):
        found = sql.rows_planned_anew(
            "find_subject", _Key, tenant_id=tenant.pk, first=start, last=start + WINDOW - 1,
            needles=needles,
        )  # fmt: skip
        if found:
            yield [row.key_id for row in found]


def _count(keys: list[int]) -> Erased:
    return Erased(
        keys=len(keys),
        bodies=Body.objects.filter(key__in=keys).count(),
        letters=DeadLetter.objects.open().filter(job__key__in=keys).count(),
    )


def _erase(keys: list[int], subject: str) -> Erased:
    counted = _count(keys)
    jobs = Job.objects.filter(key__in=keys)
    BodyEdit.objects.filter(body__key__in=keys).delete()
    Body.objects.filter(key__in=keys).delete()
    DestinationAnswer.objects.filter(job__in=jobs).delete()
    Effect.objects.filter(job__in=jobs).update(result=None)
    jobs.update(result=None)
    told = Q(message__contains=subject)
    # Attempts are append-only: one that speaks of the subject can only go. The counters stand.
    Attempt.objects.filter(told | Q(traceback__contains=subject), job__in=jobs).delete()
    DeadLetter.objects.filter(told, job__in=jobs).update(message=ERASED, fingerprint=ERASED)
    ProcessedKey.objects.filter(pk__in=keys).update(erased_at=timezone.now())
    return counted


def _record(act: Act, subject: str, total: Erased) -> None:
    with transaction.atomic(using=sql.database().alias):
        AuditEntry.objects.record(
            act.tenant, actor=act.actor, user_id=act.user_id, act="erase", about="subject",
            about_id=hashlib.sha256(subject.encode()).hexdigest(), reason=act.reason,
            keys=total.keys, bodies=total.bodies,
        )  # fmt: skip
