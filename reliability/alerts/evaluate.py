"""One pass over every rule: count once per measure, decide per scope, move the alerts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from reliability.alerts.looking import Exceptions, looks
from reliability.alerts.moves import LIVE, Look, Move, end_unmeasured, move
from reliability.models import Alert, AlertRule, Redrive, Run, Tenant

logger = logging.getLogger(__name__)

JOB = "alerts"


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """How many alerts one pass moved, and which measures could not be read."""

    held: int = 0
    dropped: int = 0
    opened: int = 0
    told: int = 0
    """Opened earlier, while something kept it from being told."""
    reminded: int = 0
    resolved: int = 0
    failed: tuple[str, ...] = ()


def evaluate(trigger: str) -> Evaluated:
    """Look at every enabled rule once, at one moment, and record the pass as a run.

    ``trigger`` is a ``Run.Trigger``. Mails are only written down here; ``deliver`` sends them.
    A measure the database could not answer is named in ``failed``, its alerts keep their state.
    Two passes at once are harmless.
    """
    now, by, drained = timezone.now(), Run.Trigger(trigger), draining()
    moves: Counter[Move] = Counter()
    failed: list[str] = []
    end_unmeasured(AlertRule.objects.filter(enabled=False), now)
    for (tenant, measure), rules in _rules_by_measure():
        try:
            moves += _evaluate(tenant, rules, now=now, by=by)
        except DatabaseError:
            logger.exception(
                "measure_failed", extra={"measure": measure, "tenant": tenant.slug}
            )
            failed.append(f"{tenant.slug}: {measure}")
    evaluated = Evaluated(
        held=moves["held"],
        dropped=moves["dropped"],
        opened=moves["opened"],
        told=moves["told"],
        reminded=moves["reminded"],
        resolved=moves["resolved"],
        failed=tuple(failed),
    )
    _record(asdict(evaluated) | {"draining": sorted(drained)}, by, now)
    return evaluated


def draining() -> set[int]:
    """Return the redrives that are running, and so may hold alerts back."""
    return set(Redrive.objects.draining().values_list("pk", flat=True))


def held_back() -> set[int]:
    """Return the redrives that were running at the last look: it may have told nobody for them."""
    last = Run.objects.filter(job=JOB).order_by("-started_at", "-pk").first()
    return set(last.facts.get("draining", ())) if last else set()


def last_look() -> datetime | None:
    """Return when the rules were last looked at, well or not; ``None`` for never."""
    looks_taken = Run.objects.filter(job=JOB).order_by("-started_at")
    return looks_taken.values_list("started_at", flat=True).first()


def _rules_by_measure() -> Iterator[tuple[tuple[Tenant, str], list[AlertRule]]]:
    rules = AlertRule.objects.filter(enabled=True).select_related("tenant")
    in_order = rules.order_by("tenant_id", "measure", "pk")
    for of, group in groupby(in_order, key=lambda rule: (rule.tenant, rule.measure)):
        yield of, list(group)


@transaction.atomic
def _evaluate(
    tenant: Tenant, rules: list[AlertRule], *, now: datetime, by: Run.Trigger
) -> Counter[Move]:
    """Move all alerts of one measure, and what they owe, in one transaction."""
    excepted = Exceptions.of(tenant, now)
    living = Alert.objects.filter(rule__in=rules, status__in=LIVE)
    at = {(alert.rule_id, alert.source_id): alert for alert in living}
    moves: Counter[Move] = Counter()
    for rule in rules:
        for look in looks(rule, at, excepted=excepted, now=now, by=by):
            moves[done := move(look)] += 1
            _log(done, look)
    return moves


def _log(done: Move, look: Look) -> None:
    if done != "nothing":
        facts = {"rule_id": look.rule.pk, "source_id": look.source_id, "value": look.value}
        logger.info("alert_%s", done, extra=facts | {"withheld": look.hush})


def _record(facts: dict[str, Any], by: Run.Trigger, now: datetime) -> None:
    Run.objects.create(
        job=JOB,
        trigger=by,
        started_at=now,
        ended_at=timezone.now(),
        ok=not facts["failed"],
        facts=facts,
    )
