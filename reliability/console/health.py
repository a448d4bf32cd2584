"""Each part of the machinery with a sentence: database, broker, workers, beat, sweep, proof."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Min, QuerySet
from django.urls import reverse

from reliability import dispatch
from reliability.alerts.letters import Scope
from reliability.alerts.machine import old_snapshot
from reliability.conf import conf
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.conservation import conservation
from reliability.console.layers import WORKER_SEEN, workers
from reliability.console.parts import ago, number
from reliability.models import Job, Run
from reliability.work.limits import in_words

SNAPSHOT_MAX = timedelta(seconds=60)
PROOF_JOB = "prove"
GOOD, WARN, BAD, NONE = "good", "warn", "bad", "closed"


@dataclass(frozen=True)
class Check:
    """One part: its state, and what was seen in one sentence; ``href`` leads to the rows."""

    name: str
    state: str
    word: str
    said: str
    href: str = ""


def checks(request: OperatorRequest) -> Iterator[Check]:
    """Look at every part once. Those of the machinery speak for every tenant at once."""
    yield _database()
    yield _broker()
    yield _workers(request)
    yield _beat(request.now)
    yield _sweep(request.now)
    yield _oldest(request)
    yield _snapshot(request)
    yield _conserved(request)
    yield _proof(request.now)


def _database() -> Check:
    started = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        row = cursor.fetchone()
    took = timedelta(seconds=time.monotonic() - started)
    version = str(row[0]).split()[0] if row else "?"
    said = f"PostgreSQL {version} answered in {max(took // timedelta(milliseconds=1), 1)} ms."
    return Check("Database", GOOD, "answers", said)


def _broker() -> Check:
    if dispatch.answers():
        return Check("Broker", GOOD, "answers", "It takes bells; a bell is only a hint.")
    poll = in_words(conf().poll_every)
    said = f"It takes no bells. Nothing is lost: workers look for due jobs every {poll}."
    return Check("Broker", WARN, "silent", said)


def _workers(request: OperatorRequest) -> Check:
    seen, during = workers(request), in_words(WORKER_SEEN)
    if seen:
        names = ", ".join(name for name, _, _ in seen[:5])
        more = f" and {len(seen) - 5} more" if len(seen) > 5 else ""  # noqa: PLR2004 - as above
        said = f"{len(seen)} ended a start within {during}: {names}{more}."
        return Check("Workers", GOOD, "seen", said)
    waits = _due(request).filter(run_at__lte=request.now - conf().start_grace).exists()
    if waits:
        said = f"None ended a start within {during}, and due jobs wait."
        return Check("Workers", BAD, "away", said, _jobs())
    said = f"None ended a start within {during}; nothing is due, so that is fine."
    return Check("Workers", NONE, "not needed", said)


def _beat(now: datetime) -> Check:
    last = Run.objects.filter(trigger=Run.Trigger.BEAT).order_by("-started_at").first()
    if last is None:
        return Check("Beat", BAD, "never", "It has not run anything yet: start it.", _runs())
    silent = now - last.started_at > conf().sweep_alarm_after
    said = f"It last ran {last.job}, {ago(last.started_at, now)}."
    return Check(
        "Beat", BAD if silent else GOOD, "silent" if silent else "runs", said, _runs()
    )


def _sweep(now: datetime) -> Check:
    last = Run.objects.filter(job="sweep", ok=True).order_by("-ended_at").first()
    passed = f"Last good pass {ago(last.ended_at, now)}." if last else "No good pass yet."
    since = now - last.ended_at if last else None
    href = f"{_runs()}?job=sweep"
    if since is None or since > conf().sweep_alarm_after:
        said = f"{passed} A crashed worker’s job is not rescued now."
        return Check("Sweep", BAD, "late", said, href)
    late = since > conf().sweep_late_after
    word = "late" if late else "on time"
    return Check("Sweep", WARN if late else GOOD, word, f"{passed} {promise()}", href)


def promise() -> str:
    """Say how soon the job of a crashed worker starts again, from the paces in force."""
    lease, sweep = conf().lease, conf().sweep_every
    pickup = conf().rescue_max - lease - sweep
    return (
        f"A crashed worker’s job starts again within {in_words(conf().rescue_max)}: "
        f"{in_words(lease)} lease, {in_words(sweep)} until the sweep, {in_words(pickup)} to pick it up."
    )


def _oldest(request: OperatorRequest) -> Check:
    due = _due(request).filter(run_at__lte=request.now)
    at = due.aggregate(at=Min("run_at"))["at"]
    if at is None:
        return Check("Oldest ready job", GOOD, "none", "Nothing due waits.", _jobs())
    waited = timedelta(seconds=int((request.now - at).total_seconds()))
    longest = conf().start_grace + conf().sweep_every
    said = f"It has waited {in_words(waited)}; a lost bell explains {in_words(longest)}."
    late = waited > longest
    word = "late" if late else "in time"
    return Check("Oldest ready job", WARN if late else GOOD, word, said, _jobs())


def _snapshot(request: OperatorRequest) -> Check:
    held = old_snapshot(Scope(tenant=request.tenant), request.now).get(None, 0)
    length = timedelta(seconds=held)
    if length > SNAPSHOT_MAX:
        said = f"A session has held a snapshot for {in_words(length)}: claims slow down meanwhile."
        return Check("Old snapshots", WARN, "held", said)
    said = f"No session that we may see holds one for over {in_words(SNAPSHOT_MAX)}."
    return Check("Old snapshots", GOOD, "none", said)


def _conserved(request: OperatorRequest) -> Check:
    told = conservation(request.tenant)
    accepted = f"{number(told.accepted)} accepted"
    if told.missing:
        said = f"{number(abs(told.missing))} of {accepted} are not accounted for."
        return Check("Conservation", BAD, "broken", said, reverse("console:overview"))
    said = f"{accepted} = done + ready + running + dead + discarded + resolved: nothing lost."
    if told.counted_at:
        said += f" The oldest count was taken {ago(told.counted_at, request.now)}."
    return Check("Conservation", GOOD, "holds", said, reverse("console:overview"))


def _proof(now: datetime) -> Check:
    last = Run.objects.filter(job=PROOF_JOB).order_by("-started_at").first()
    if last is None:
        said = "None is on record here: run manage.py prove with this database configured."
        return Check("Last proof", NONE, "none", said)
    told = last.facts
    said = (
        f"{ago(last.ended_at, now)}, version {told.get('version')}: seed {told.get('seed')}, "
        f"{number(told.get('events', 0))} events × {told.get('replays')}, "
        f"{told.get('kills')} kills, {told.get('hit')} hit a running job, "
        f"{told.get('effects')} effects of {told.get('operations')} operations outside, "
        f"{told.get('checks')} checks, {len(told.get('failed', []))} failed."
    )
    href = f"{_runs()}?job={PROOF_JOB}"
    if last.ok:
        return Check("Last proof", GOOD, "PASS", said, href)
    return Check(
        "Last proof", BAD, "FAIL", f"{said} {'; '.join(told.get('failed', [])[:3])}", href
    )


def _due(request: OperatorRequest) -> "QuerySet[Job]":
    return for_tenant(request, Job.objects.ready().filter(held=""))


def _jobs() -> str:
    return f"{reverse('console:jobs')}?state=ready"


def _runs() -> str:
    return reverse("console:runs")
