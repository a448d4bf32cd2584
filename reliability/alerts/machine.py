"""What the rules see of the machinery: sweep, beat, waiting jobs, snapshots held open."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from reliability.alerts.letters import Scope, Values, seconds
from reliability.conf import conf
from reliability.models import Job, Run
from reliability.work.drain import QUEUES

AGEING_MAX = 10_000
"""Jobs looked at in each queue, the oldest first."""
OLDEST_SNAPSHOT = """
    SELECT max(EXTRACT(epoch FROM now() - xact_start))::bigint FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND backend_xmin IS NOT NULL
"""
"""now() is when our own transaction began: a wait for this answer makes nothing older."""


def sweep_late(scope: Scope, now: datetime) -> Values:
    """Return the seconds since the last good sweep; none yet counts from the tenant's start."""
    last = Run.objects.filter(job="sweep", ok=True).order_by("-ended_at").first()
    return {None: seconds(now - (last.ended_at if last else scope.tenant.created_at))}


def beat_silent(scope: Scope, now: datetime) -> Values:
    """Return the seconds since beat last ran anything; never yet counts from the tenant's start."""
    last = Run.objects.filter(trigger=Run.Trigger.BEAT).order_by("-started_at").first()
    return {None: seconds(now - (last.started_at if last else scope.tenant.created_at))}


def oldest_ready_job(scope: Scope, now: datetime) -> Values:
    """Return how long the oldest due job has waited, in seconds, once its bell must be lost.

    Held jobs wait for somebody and do not count. Looks at ``AGEING_MAX`` jobs of each queue.
    """
    ageing = Job.objects.due(now - conf().start_grace).filter(tenant=scope.tenant)
    if scope.kind:
        ageing = ageing.filter(kind=scope.kind)
    oldest: dict[int | None, int] = {}
    for queue in QUEUES:
        rows = ageing.filter(queue=queue).order_by("run_at")[:AGEING_MAX]
        for source_id, run_at in rows.values_list("source_id", "run_at"):
            oldest[source_id] = max(oldest.get(source_id, 0), seconds(now - run_at))
    return oldest


def old_snapshot(_scope: Scope, _now: datetime) -> Values:
    """Return for how many seconds the oldest snapshot has been held, on the database's clock.

    Other sessions of this database; a role that may not see theirs sees its own only. While one
    is held no dead row can be removed, and claims slow down (``pg_stat_activity.backend_xmin``).
    """
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_SNAPSHOT)
        row = cursor.fetchone()
    return {} if row is None or row[0] is None else {None: max(0, int(row[0]))}
