"""Wait until nothing is under way, and settle unknown letters as a careful operator would."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby

from django.db.models import Q
from django.utils import timezone

from reliability.handlers import DownstreamKey
from reliability.models import DeadLetter, Job
from reliability.proof.cast import KINDS, Effect
from reliability.proof.mails import FOLLOW_UP, message_id
from reliability.proof.sink_process import Sink
from reliability.work.dead_letters import Act, Seen, requeue, resolve

LOOK_EVERY_SECONDS = 0.1
OPERATOR = "scripted operator"
ROUNDS_MAX = 5
MOVING = (Job.State.READY, Job.State.RUNNING)
MAILED = (FOLLOW_UP, *(name for name, kind in KINDS.items() if kind.effect is Effect.MAIL))
"""Run once: that one failed is its handler's word, and the answer it waited for may be lost."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What came of it; `left` jobs still moved when the time was over."""

    left: int = 0
    resolved: int = 0
    requeued: int = 0


def settle(
    sink: Sink, *, seconds: float, told: Callable[[int], None] = lambda _left: None
) -> Settled:
    """Wait until no job moves, settle what ended unknown, and wait again; bounded by `seconds`.

    An unknown letter is resolved where the sink shows its effect, requeued where it shows none; so
    is a failed one of a mail, whose answer may have been lost after the mail was taken.
    `told` hears how many jobs are left.
    """
    until = time.monotonic() + seconds
    done = Settled()
    for _ in range(ROUNDS_MAX):
        left = _wait(until, told)
        if left:
            return replace(done, left=left)
        resolved, requeued = _settle_doubtful(sink)
        if not resolved + requeued:
            return done
        done = replace(
            done, resolved=done.resolved + resolved, requeued=done.requeued + requeued
        )
    return replace(done, left=_wait(until, told))


def _wait(until: float, told: Callable[[int], None]) -> int:
    while left := Job.objects.filter(state__in=MOVING).count():
        told(left)
        if time.monotonic() > until:
            return left
        time.sleep(LOOK_EVERY_SECONDS)
    told(0)
    return 0


def _settle_doubtful(sink: Sink) -> tuple[int, int]:
    failed = Q(outcome=DeadLetter.Outcome.FAILED, kind__in=MAILED)
    doubtful = DeadLetter.objects.open().filter(Q(outcome=DeadLetter.Outcome.UNKNOWN) | failed)
    letters = doubtful.select_related("tenant", "job__key").order_by("tenant_id", "pk")[:500]
    mailed = {mail["message_id"] for mail in sink.mails()}
    resolved = requeued = 0
    for tenant, group in groupby(letters, key=lambda letter: letter.tenant):
        applied, absent = list[Seen](), list[Seen]()
        for letter in group:
            found = _applied(letter.job, sink, mailed)
            (applied if found else absent).append(Seen(letter.pk, letter.job.version))
        why = f"the sink was asked at {timezone.now():%H:%M:%S} UTC: it "
        done = Act(tenant, OPERATOR, reason=why + "shows the effect")
        open_still = Act(tenant, OPERATOR, reason=why + "shows no effect")
        resolved += len(resolve(applied, done).letter_ids) if applied else 0
        requeued += len(requeue(absent, open_still).letter_ids) if absent else 0
    return resolved, requeued


def _applied(job: Job, sink: Sink, mailed: set[str]) -> bool:
    """Tell from the counters alone whether the job's effect is in the world.

    A request still under way will have its effect.
    """
    key = DownstreamKey(job.key.downstream_key)
    kind = KINDS.get(job.kind)
    if job.kind == FOLLOW_UP or (kind and kind.effect is Effect.MAIL):
        return message_id(key) in mailed
    return bool(kind and kind.effect is Effect.HTTP and sink.effects_under(key) != 0)
