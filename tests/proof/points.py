"""One process killed at each named point, then the sweep and a second one; prints what is left.

Call `main` with Django set up, on throw-away servers at the quick pace, with RELIABILITY_KILL.
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from reliability import Event, LocalTransaction, PermanentError, RunOnce, enqueue, handler
from reliability.killing import Point, obeyed, order
from reliability.models import DeadLetter, Job, RedriveMember, Tenant
from reliability.sweep import sweep
from reliability.work import attempt
from reliability.work.batch import prepare, run_batch
from reliability.work.dead_letters import Act
from reliability.work.drain import drain
from reliability.work.lease import take
from reliability.work.redrive import Pace, Plan, advance, freeze, start

Facts = dict[str, Any]
JOBS = 3


def _note(event: Event) -> None:
    """Have an effect that a repeat would double: a row of a table without any constraint."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO points_effect VALUES (%s)", [event.key])


@handler("points.local", sink=LocalTransaction())
def local(event: Event) -> None:
    _note(event)


@handler("points.once", policy=RunOnce())
def once(event: Event) -> None:
    _note(event)


@handler("points.failing", sink=LocalTransaction())
def failing(event: Event) -> None:
    """Fail once for good, and work in the round that a person asked for."""
    if event.round == 1:
        raise PermanentError("not yet")
    _note(event)


def main() -> None:
    """Kill at one point after the other and print what each led to."""
    call_command("migrate", verbosity=0)
    Tenant.objects.create(slug="points", name="Points")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE points_effect (key text NOT NULL)")
    sys.stdout.write(json.dumps({point: play(point) for point, play in PLAYS.items()}))


def killed_while(point: Point, work: Callable[[], object]) -> bool:
    """Do some work in a process of its own, which is to die at the point; tell whether it did."""
    order(Path(os.environ["RELIABILITY_DATA"]), point)
    status = in_a_process(work)
    by_kill = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return by_kill and obeyed(Path(os.environ["RELIABILITY_DATA"]), point) is not None


def in_a_process(work: Callable[[], object]) -> int:
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def recover() -> None:
    """Let time pass, sweep as the clock does, and let another worker work."""
    past = timezone.now() - timedelta(seconds=1)
    for _ in range(2):
        Job.objects.filter(state="running").update(lease_expires_at=past)
        sweep("command")
        Job.objects.filter(state="ready").update(run_at=past)
        in_a_process(lambda: (drain("local"), drain("outside")))


def left(prefix: str, *, killed: bool) -> Facts:
    """Count the jobs of one play by how they ended, and the effects of each key."""
    jobs = Job.objects.filter(key__key__startswith=prefix)
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM points_effect WHERE starts_with(key, %s)", [prefix])
        effects = Counter(key for (key,) in cursor.fetchall())
    letters = DeadLetter.objects.open().filter(job__in=jobs)
    return {
        "killed": killed,
        "states": sorted(jobs.values_list("state", flat=True)),
        "effects": sorted(effects.values()),
        "outcomes": sorted(letters.values_list("outcome", flat=True)),
    }


def some(kind: str, prefix: str, count: int = JOBS) -> None:
    with transaction.atomic():
        for number in range(count):
            enqueue(kind, key=f"{prefix} {number}", tenant="points")


def amid_local(point: Point) -> Facts:
    some("points.local", point)
    killed = killed_while(point, lambda: drain("local"))
    recover()
    return left(point, killed=killed)


def enqueueing(point: Point) -> Facts:
    killed = killed_while(point, lambda: some("points.local", point))
    recover()
    return left(point, killed=killed)


def run_once(point: Point) -> Facts:
    some("points.once", point, 1)
    killed = killed_while(point, lambda: drain("outside"))
    recover()
    return left(point, killed=killed)


def stopping(point: Point) -> Facts:
    some("points.local", point)

    def stop() -> None:
        attempt.stopping = lambda: True
        run_batch(prepare(take("local", limit=JOBS)))

    killed = killed_while(point, stop)
    recover()
    return left(point, killed=killed)


def sweeping(point: Point) -> Facts:
    some("points.local", point)
    lost = killed_while(Point.LEASED, lambda: drain("local"))
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(state="running").update(lease_expires_at=past)
    killed = killed_while(point, lambda: sweep("command"))
    ready = Job.objects.filter(key__key__startswith=point, state="ready").count()
    recover()
    return left(point, killed=lost and killed) | {"ready_after_the_kill": ready}


def redriving(point: Point) -> Facts:
    some("points.failing", point)
    in_a_process(lambda: drain("local"))
    act = Act(Tenant.objects.get(slug="points"), "ola", reason="the cause is mended")
    letters = DeadLetter.objects.open().filter(job__kind="points.failing")
    pace = Pace(how="steady", rate=1000.0, stop_percent=20, stop_after=10)
    frozen = freeze(letters, act, asked="status=open", now=timezone.now())
    redrive = start(frozen, act, Plan(pace=pace, include_cannot_tell=True))
    later = timezone.now() + timedelta(seconds=10)
    killed = killed_while(point, lambda: advance(later))
    for seconds in (20, 30, 40):
        recover()
        advance(timezone.now() + timedelta(seconds=seconds))
    redrive.refresh_from_db()
    outcomes = RedriveMember.objects.filter(redrive=redrive).values_list("outcome", flat=True)
    rounds = Job.objects.filter(kind="points.failing").values_list("round", flat=True)
    facts = {"redrive": redrive.state, "members": sorted(outcomes), "rounds": sorted(rounds)}
    return left(point, killed=killed) | facts


PLAYS: dict[Point, Callable[[Point], Facts]] = {
    Point.UNRUNG: enqueueing,
    Point.LEASED: amid_local,
    Point.INTENDED: run_once,
    Point.UNFINISHED: run_once,
    Point.AMID_BATCH: amid_local,
    Point.UNCOMMITTED: amid_local,
    Point.COMMITTED: amid_local,
    Point.RELEASING: stopping,
    Point.RESCUED: sweeping,
    Point.REQUEUED: redriving,
}
"""The door's own point needs a web server: `manage.py prove`. Marks: `benchmarks.marks`."""
