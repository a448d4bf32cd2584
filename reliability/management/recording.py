"""Keep a proof's verdict where the console's health page finds it."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from reliability import __version__
from reliability.management.proving import Proof
from reliability.models import Run

PROMISES_MAX = 20
JOB = "prove"


def record_proof(proof: Proof, started_at: datetime) -> str:
    """Write the verdict as a ``Run`` of the configured database; return what became of that.

    The proof itself ran on servers of its own and stands whatever is said here.
    """
    if not proof.terms.key_check:
        return "not recorded: without the key check it has to fail"
    if getattr(settings, "NOT_RUNNING", False):
        return "not recorded: no database is configured or running"
    try:
        Run.objects.create(
            job=JOB, trigger=Run.Trigger.COMMAND, started_at=started_at,
            ended_at=timezone.now(), ok=proof.ok, facts=facts_of(proof),
        )  # fmt: skip
    except DatabaseError:
        return "not recorded: the configured database does not answer or is not migrated"
    return "recorded for the health page"


def facts_of(proof: Proof) -> dict[str, Any]:
    """Return what is remembered of a proof: terms, figures, what failed."""
    found = proof.figures
    checks = [check for group in proof.checks for check in group]
    return {
        "seed": proof.terms.seed,
        "events": proof.terms.events,
        "replays": proof.terms.replays,
        "kills": found["kills"],
        "hit": found["kills_that_hit_a_running_job"],
        "effects": found.get("effects"),
        "operations": found.get("effect_names"),
        "checks": len(checks),
        "failed": [check.promise for check in checks if not check.ok][:PROMISES_MAX],
        "version": __version__,
    }
