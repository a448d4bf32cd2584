"""The frozen set: which letters a redrive is about, and what is known of each before it starts."""

from datetime import datetime
from itertools import islice
from time import monotonic

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from reliability import sql
from reliability.conf import conf
from reliability.errors import RedriveRefused
from reliability.handlers import (
    Applied,
    CannotTell,
    Evidence,
    NotApplied,
    UniqueConstraint,
    kinds,
)
from reliability.models import DeadLetter, Redrive, RedriveMember
from reliability.work.dead_letters import Act
from reliability.work.evidence import evidence_of, rows_by_key, sure, verifies

Verdict, Outcome = RedriveMember.Verdict, RedriveMember.Outcome
KEYS = ("letter__job__key__key", "letter__job__key__downstream_key")
CHOSEN = ("id", "job_id", "round", "kind", "outcome", "reason")
"""What the statement needs of each letter."""
WHY_MAX = 1_000
ASKABLE = (Verdict.CANNOT_TELL, Verdict.WINDOW_CLOSED)


def freeze(letters: "QuerySet[DeadLetter]", act: Act, *, asked: str, now: datetime) -> Redrive:
    """Freeze the open letters of ``letters``, oldest first, and say what would become of each.

    Changes no letter. ``asked`` is the query string the set was found by; an empty one would mean
    everything and is refused, as is a set without an open letter. At most
    ``conf().redrive_letters_max`` letters; ``Redrive.more`` says that there were more. Kinds with
    ``verify`` are asked about the first letters only, for a bounded time. Raises RedriveRefused.
    """
    if not asked.strip():
        raise RedriveRefused("Say which letters: an empty filter would mean all of them.")
    open_ = letters.filter(status=DeadLetter.Status.OPEN, tenant=act.tenant)
    with transaction.atomic(using=sql.database().alias):
        redrive = Redrive.objects.create(
            tenant=act.tenant, asked=asked, cutoff_at=now, actor=act.actor, user_id=act.user_id
        )
        limit = conf().redrive_letters_max
        _freeze(redrive, open_.filter(buried_at__lte=now), now)
        many = redrive.members.count()
        if not many:
            raise RedriveRefused("No open letter matches.")
        if many == limit:
            last = redrive.members.order_by("-letter_id").values_list("letter_id", flat=True)[
                0
            ]
            redrive.more = open_.filter(pk__gt=last).exists()
            redrive.save(update_fields=["more"])
    _look_up(redrive)
    ask(redrive, RedriveMember.objects.filter(verdict__in=ASKABLE))
    return redrive


def _freeze(redrive: Redrive, letters: "QuerySet[DeadLetter]", now: datetime) -> None:
    limit = conf().redrive_letters_max
    some = letters.order_by("pk").values(*CHOSEN)[:limit]
    chosen, chosen_by = some.query.sql_with_params()
    known = kinds()
    statement = sql.statement("freeze_members").replace("{chosen}", chosen)
    with sql.database().cursor() as cursor:
        cursor.execute(
            statement,
            [redrive.pk, redrive.tenant_id, now, [kind.name for kind in known if sure(kind)],
             [kind.name for kind in known], *chosen_by],
        )  # fmt: skip
        # A large set begins to move at once, before anybody has counted its rows for the planner.
        cursor.execute("ANALYZE reliability_redrivemember")


def _look_up(redrive: Redrive) -> None:
    """Judge letters of kinds with a unique constraint: the row is there, or it is not."""
    for kind in kinds():
        if not isinstance(kind.sink, UniqueConstraint) or verifies(kind):
            continue
        members = redrive.members.filter(verdict=Verdict.CANNOT_TELL, letter__kind=kind.name)
        found = members.values_list("pk", *KEYS).iterator()
        while some := list(islice(found, conf().redrive_batch_max)):
            _judge_by_rows(kind.sink, {text: pk for pk, *texts in some for text in texts})


def _judge_by_rows(sink: UniqueConstraint, keys: dict[str, int]) -> None:
    applied = set(rows_by_key(sink, keys))
    members = RedriveMember.objects.filter(pk__in=set(keys.values()))
    members.filter(pk__in=applied).update(
        verdict=Verdict.APPLIED, why=f"{sink.model} has a row under its key"
    )
    members.exclude(pk__in=applied).update(
        verdict=Verdict.WILL_RUN,
        outcome=Outcome.PENDING,
        why=f"{sink.model} has no row under its key",
    )


def ask(redrive: Redrive, of: "QuerySet[RedriveMember]", *, limit: int | None = None) -> int:
    """Ask ``verify`` about members of ``of``, oldest letter first; return how many were asked.

    Bounded by ``conf().redrive_verify_max`` (or ``limit``) and by ``conf().redrive_verify_time``.
    Outside transactions: providers answer slowly.
    """
    asking = [kind.name for kind in kinds() if verifies(kind)]
    if not asking:
        return 0
    some = min(limit or conf().redrive_verify_max, conf().redrive_verify_max)
    members = of.filter(redrive=redrive, letter__kind__in=asking).select_related(
        "letter__job__key"
    )
    until = monotonic() + conf().redrive_verify_time.total_seconds()
    asked = 0
    for member in members.order_by("letter_id")[:some]:
        if monotonic() > until:
            break
        _judge(member, redrive, evidence_of(member.letter.job))
        asked += 1
    return asked


def _judge(member: RedriveMember, redrive: Redrive, evidence: Evidence) -> None:
    """Write down what the world said; a letter whose outcome is known by now keeps it."""
    verdict, why = _read(evidence)
    if verdict == Verdict.CANNOT_TELL and member.verdict == Verdict.WINDOW_CLOSED:
        verdict = Verdict.WINDOW_CLOSED
    wanted = verdict == Verdict.WILL_RUN or (
        verdict == Verdict.CANNOT_TELL and redrive.include_cannot_tell
    )
    left = Outcome.SKIPPED if redrive.started_at else Outcome.LEFT
    RedriveMember.objects.filter(pk=member.pk, outcome=member.outcome).update(
        verdict=verdict,
        outcome=Outcome.PENDING if wanted else left,
        why=why[:WHY_MAX],
        asked_at=timezone.now(),
    )


def _read(evidence: Evidence) -> tuple[str, str]:
    match evidence:
        case NotApplied():
            return Verdict.WILL_RUN, "asked: not applied"
        case Applied(reference=reference):
            return Verdict.APPLIED, f"asked: applied as {reference}"
        case CannotTell(reason=reason):
            return Verdict.CANNOT_TELL, reason or "asked: no answer"
