"""Accidents on a real stack, one after the other; prints as JSON what each left behind.

Call `main` with Django set up in the environment of `reliability.management.inside`.
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.db import connections, transaction

from reliability import enqueue
from reliability.embedded.servers import Servers
from reliability.management.stage import Stage, Wishes, stage
from reliability.management.trial import yesterday
from reliability.models import Job, Tenant
from reliability.proof.faults import Kill, Killer
from reliability.proof.observe import lost, observe
from reliability.proof.post import Answered
from reliability.proof.story import Story

Facts = dict[str, Any]
DEAFENED_MAX = 4


def main() -> None:
    """Play all of them on one stage."""
    folder = Path(os.environ["RELIABILITY_DATA"])
    with stage(folder, Wishes(seed=5, latency_ms=60.0)) as played:
        found = {
            "group_killed": group_killed(played),
            "deadly_job": deadly_job(),
            "broker_stopped": broker_stopped(played),
            "workers_deafened": workers_deafened(played),
            "database_restarted": database_restarted(played),
        }
    sys.stdout.write(json.dumps(found))


def group_killed(played: Stage) -> Facts:
    """Kill a whole group while it has jobs running; nobody helps afterwards."""
    story = story_of(seed=1)
    kill = Kill(replay=0, after=20, whole_group=True, moment="effect")
    with Killer([kill], groups=played.groups, sink=played.sink, seed=1) as killer:
        answers = played.sender.send_all(story.deliveries(), lambda _: killer.answered())
    left = settled()
    found = observe(played.sink, answers)
    return found | {"left": left, "hit": len(killer.log[0].hit), "told": story.expected()}


def deadly_job() -> Facts:
    """Enqueue one job that kills its worker amid neighbours of the same batch."""
    tenant = Tenant.objects.get(slug="acme")
    with transaction.atomic():
        for number in range(9):
            payload = {"kills": number == 4}
            enqueue("deadly", key=f"d-{number}", tenant=tenant, payload=payload)
    left = settled()
    jobs = Job.objects.filter(kind="deadly").order_by("key__key")
    letter = jobs.get(key__key="d-4").letters.get()
    return {
        "left": left,
        "states": [job.state for job in jobs],
        "outcome": letter.outcome,
        "crashes": letter.job.crashes,
        "crashes_alone": letter.job.crashes_alone,
    }


def broker_stopped(played: Stage) -> Facts:
    """Send while the broker is down, start it again, and wait for what that leads to."""
    servers = Servers(played.folder)
    deliveries = story_of(seed=2).deliveries()
    servers.halt("valkey")
    began = time.monotonic()
    answers = played.sender.send_all(deliveries, lambda _: None)
    took = time.monotonic() - began
    servers.resume("valkey")
    return statuses(answers) | {"seconds": took, "left": settled()}


def workers_deafened(played: Stage) -> Facts:
    """Let the broker go while every bell taken is unacknowledged: its place stays taken."""
    left = attempts = 0
    while not was_deaf(played) and attempts < DEAFENED_MAX:
        left += deafen(played, attempts)
        attempts += 1
    return {"left": left, "deaf": was_deaf(played)}


def deafen(played: Stage, attempt: int) -> int:
    servers = Servers(played.folder)
    pools = [pid for group in played.groups() for pid in group.pool]
    signal_all(pools, signal.SIGSTOP)
    enqueue_some(f"before-{attempt}")
    time.sleep(1.0)  # the parents take bells up to their prefetch counts
    servers.halt("valkey")
    signal_all(pools, signal.SIGCONT)
    time.sleep(1.0)  # the pools accept them, and no acknowledgement gets through
    servers.resume("valkey")
    enqueue_some(f"after-{attempt}")
    return settled()


def was_deaf(played: Stage) -> bool:
    logs = (played.folder / "log").glob("jobs-*.log")
    return any("worker_deaf" in path.read_text() for path in logs)


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


def enqueue_some(name: str) -> None:
    tenant = Tenant.objects.get(slug="acme")
    for number in range(9):
        with transaction.atomic():
            enqueue("deadly", key=f"{name}-{number}", tenant=tenant, payload={"kills": False})
        time.sleep(0.05)


def database_restarted(played: Stage) -> Facts:
    """Stop the database while deliveries come in, start it two seconds later."""
    servers = Servers(played.folder)
    half = threading.Event()
    answered: list[Answered] = []
    answers: list[Answered] = []

    def told(answer: Answered) -> None:
        answered.append(answer)
        if len(answered) == 100:
            half.set()

    def send() -> None:
        deliveries = story_of(seed=3, events=300).deliveries()
        answers.extend(played.sender.send_all(deliveries, told))

    sending = threading.Thread(target=send)
    sending.start()
    half.wait(60)
    servers.halt("postgres")
    time.sleep(2)
    servers.resume("postgres")
    sending.join()
    connections.close_all()  # ours is to the database that is gone
    left = settled()
    return statuses(answers) | {"lost": lost(answers), "left": left}


def statuses(answers: Sequence[Answered]) -> Facts:
    """Count what the door answered in the end, and before that."""
    return {
        "at_last": dict(Counter(answer.status for answer in answers)),
        "before": dict(Counter(status for answer in answers for status in answer.before)),
    }


def story_of(*, seed: int, events: int = 60) -> Story:

    return Story(seed=seed, events=events, day=yesterday())


def settled(seconds: float = 60) -> int:
    """Wait until nothing moves and return how many jobs still do: nobody acts meanwhile."""
    until = time.monotonic() + seconds
    count: Callable[[], int] = Job.objects.filter(state__in=("ready", "running")).count
    while (left := count()) and time.monotonic() < until:
        time.sleep(0.1)
    return left
