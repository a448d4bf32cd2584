"""What one rule sees now on each of its scopes, and why somebody may not be told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from reliability.alerts.letters import Scope, Values, drained, muted, silenced_kinds
from reliability.alerts.measures import DRAINABLE, MEASURES, OF_LETTERS
from reliability.alerts.moves import Look, levels_of
from reliability.alerts.rules import Seen
from reliability.models import Alert, AlertRule, Run, Silence, Tenant

Measure = AlertRule.Measure
Living = Mapping[tuple[int, int | None], Alert]
"""The alerts that live, by rule and source."""


@dataclass(frozen=True, kw_only=True)
class Exceptions:
    """What keeps a tenant's alerts from being told, read once a pass."""

    silences: Sequence[Silence]
    muted: Q | None
    drained: Q | None

    @classmethod
    def of(cls, tenant: Tenant, now: datetime) -> Exceptions:
        """Read the tenant's silences, muted causes and running redrives."""
        silences = Silence.objects.active(now).filter(tenant=tenant).order_by("-until_at")
        return cls(silences=list(silences), muted=muted(tenant, now), drained=drained(tenant))

    def covering(self, rule: AlertRule, source_id: int | None) -> Silence | None:
        """Return the silence of a rule on a source that ends last, if there is one."""
        found = (s for s in self.silences if s.covers(rule.pk, rule.kind, source_id))
        return next(found, None)

    def uncounted(self, rule: AlertRule) -> Q | None:
        """Match the letters that count for no delivery of a rule."""
        kinds = [s for s in self.silences if s.kind and s.rule_id in {None, rule.pk}]
        of_kinds = silenced_kinds(kinds)
        if self.muted is None or of_kinds is None:
            return self.muted if of_kinds is None else of_kinds
        return self.muted | of_kinds


def looks(
    rule: AlertRule, at: Living, *, excepted: Exceptions, now: datetime, by: str = ""
) -> list[Look]:
    """Look at every scope of a rule, in one order for all evaluators.

    So none waits for another twice. ``by`` is who looks (a ``Run.Trigger``): a beat that looks is
    not silent.
    """
    values = measured(rule, now, by=by)
    uncounted = excepted.uncounted(rule)
    drained_here = excepted.drained if rule.measure in DRAINABLE else None
    unmuted = _without(rule, values, uncounted, now=now)
    undrained = _without(rule, values, drained_here, now=now)
    neither = uncounted | drained_here if uncounted and drained_here else None
    heard = _without(rule, unmuted, neither, now=now)
    found = []
    for source_id in _scopes(rule, values, at):
        value, counted = values.get(source_id, 0), unmuted.get(source_id, 0)
        silence = excepted.covering(rule, source_id)
        seen = Seen(
            value=value,
            unmuted=min(counted, heard.get(source_id, 0)),
            undrained=undrained.get(source_id, 0),
            silenced=silence is not None,
        )
        look = Look(
            rule=rule,
            source_id=source_id,
            alert=at.get((rule.pk, source_id)),
            value=value,
            now=now,
            hush=seen.hush(levels_of(rule)),
            hush_until=silence.until_at if silence else None,
            uncounted=value - counted if rule.measure in OF_LETTERS else 0,
        )
        found.append(look)
    return found


def measured(rule: AlertRule, now: datetime, *, by: str = "") -> Values:
    """Return what a rule's measure says now."""
    if rule.measure == Measure.BEAT and by == Run.Trigger.BEAT:
        return {None: 0}
    return MEASURES[rule.measure](Scope.of(rule), now)


def _without(rule: AlertRule, values: Values, some: Q | None, *, now: datetime) -> Values:
    """Measure again without some letters; what is no matter of letters stays as it is."""
    if some is None or rule.measure not in OF_LETTERS or not values:
        return values
    return MEASURES[rule.measure](replace(Scope.of(rule), without=some), now)


def _scopes(rule: AlertRule, values: Values, at: Living) -> list[int | None]:
    known = {source_id for rule_id, source_id in at if rule_id == rule.pk}
    seen = {s for s in values if s is None or rule.source_id in {None, s}}
    return sorted(seen | known, key=lambda source_id: source_id or 0)
