"""What is true after a replay: our tables and the counters, each read on its own."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count, F

from reliability.models import Attempt, DeadLetter, Job, Operation, ProcessedKey, Receipt, Run
from reliability.proof.cast import Fate
from reliability.proof.mails import STORY_HEADER
from reliability.proof.post import Answered
from reliability.proof.sink_process import Sink
from reliability.proof.wrong_clock import AHEAD

Facts = dict[str, Any]
SHOWN_MAX = 20


def observe(sink: Sink, answers: Sequence[Answered]) -> Facts:
    """Collect everything a verdict needs once all is settled; `answers` are all so far."""
    counts = sink.counts()
    mails = [mail for mail in sink.mails() if STORY_HEADER in mail["headers"]]
    return {
        **_answered(answers),
        **_ledger(),
        "effects": counts["effects"],
        "effects_by_path": dict(sorted(counts["effects_by_path"].items())),
        "effect_names": counts["operations"],
        "repeated_effects": counts["repeated_operations"],
        "effects_with_several_keys": counts["operations_with_several_keys"],
        "raw_requests": counts["requests"],
        "replayed_by_the_sink": counts["replays"],
        "requests_by_status": counts["by_status"],
        "mails": len(mails),
        "repeated_mails": _repeated(mail["message_id"] for mail in mails),
        "lost": lost(answers),
        "digest": _digest(counts["digest"], mails),
    }


def lost(answers: Sequence[Answered]) -> list[str]:
    """Name the events we answered 2xx and have no row of: nothing may be here.

    A body that is no JSON has no key of its own: those are counted.
    """
    taken = [answer.delivery.event for answer in answers if answer.taken]
    whole = {(event.source, event.key) for event in taken if event.fate is not Fate.BROKEN}
    known = set(ProcessedKey.objects.values_list("source__slug", "key"))
    broken = sum(event.fate is Fate.BROKEN for event in taken)
    buried = DeadLetter.objects.filter(outcome=DeadLetter.Outcome.UNPARSEABLE).count()
    short = [f"{broken - buried} broken deliveries"] if buried < broken else []
    return [*short, *(f"{source} {key}" for source, key in sorted(whole - known))][:SHOWN_MAX]


def _answered(answers: Sequence[Answered]) -> Facts:
    said = Counter(answer.said for answer in answers)
    return {
        "sent": len(answers),
        "refused": sum(not answer.taken for answer in answers),
        "accepted": said["accepted"],
        "duplicates": said["duplicate"],
        "sent_again": sum(len(answer.before) for answer in answers),
    }


def _ledger() -> Facts:
    """Read keys, jobs and letters; events of providers apart from jobs they led to."""
    keys = ProcessedKey.objects.filter(absorbed=False)
    jobs, own = Job.objects.all(), Job.objects.filter(source__internal=True)
    states = dict(jobs.values_list("state").annotate(Count("pk")).order_by("state"))
    letters = DeadLetter.objects.open().values_list("outcome").annotate(Count("pk"))
    events = dict(
        jobs.filter(source__internal=False).values_list("state").annotate(Count("pk"))
    )
    sweeps = Run.objects.filter(job="sweep", ok=True)
    return {
        "claimed": keys.filter(source__internal=False).count(),
        "absorbed": ProcessedKey.objects.filter(absorbed=True).count(),
        "conflicts": Receipt.objects.filter(verdict=Receipt.Verdict.CONFLICT).count(),
        "operations": Operation.objects.count(),
        "follow_ups": own.count(),
        "done": events.get("done", 0) + events.get("resolved", 0),
        "follow_ups_done": own.filter(state__in=("done", "resolved")).count(),
        "dead": dict(letters.order_by("outcome")),
        "conservation": {"accepted": keys.count(), "jobs": sum(states.values())} | states,
        "rescued_by_the_sweep": sum(run.facts["rescued"] for run in sweeps.only("facts")),
        "buried_by_the_sweep": sum(run.facts["buried"] for run in sweeps.only("facts")),
        "attempts_by_a_wrong_clock": Attempt.objects.filter(
            started_at__gt=F("ended_at") + AHEAD / 2
        ).count(),
        "sweeps_by_trigger": dict(
            sweeps.values_list("trigger").annotate(Count("pk")).order_by("trigger")
        ),
    }


def _digest(effects_digest: str, mails: Sequence[Facts]) -> str:
    """Digest the state of the world: how each thing ended, here and at the counters.

    Left out is what may differ between two good runs: which of two events of one operation came
    first, times, generated keys. Done and resolved are the same to the world.
    """
    letters = DeadLetter.objects.open().values_list("job_id", "outcome")
    outcome = dict(letters)
    keys = ProcessedKey.objects.filter(absorbed=False).select_related("source__tenant", "job")
    lines = [
        *(f"mail {mail['to']} {mail['subject']} {mail['body']}" for mail in mails),
        *(_line(key, outcome.get(key.job.pk, "")) for key in keys),
        effects_digest,
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _line(key: ProcessedKey, outcome: str) -> str:
    generated = key.key.startswith("delivery:")
    of = f"{key.operation_class} {key.operation_reference}" if key.operation_class else key.key
    state = "done" if key.job.state == Job.State.RESOLVED else key.job.state
    where = f"{key.source.tenant.slug} {key.source.slug}"
    return f"{where} {'a broken delivery' if generated else of} {state} {outcome}"


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, n in Counter(names).items() if n > 1)[:SHOWN_MAX]
