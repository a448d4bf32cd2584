"""Ignore rules: what nobody needs to look at, for a reason, and never for ever."""

from dataclasses import dataclass
from datetime import date, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from reliability import sql
from reliability.models import AuditEntry, Discrepancy, IgnoreRule, Source
from reliability.reconcile.discrepancies import NOT_CLOSED, Refusal
from reliability.work.dead_letters import Act

RULE_DAYS_MAX = 366


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a rule shall cover; amounts are the largest difference, without its sign."""

    name: str
    family: str
    operation_class: str
    until: date
    starts_with: str = ""
    amount_minor_max: int | None = None
    currency: str = ""


@dataclass(frozen=True)
class Ruled:
    """The rule as it stands."""

    rule: IgnoreRule


def add_rule(source: Source, wanted: Wanted, act: Act) -> Ruled | Refusal:
    """Ignore what comes from now on and fits; ``act.reason`` is required, at most a year ahead.

    What is open already stays so: a rule decides about reports that are yet to be made.
    """
    if why := _wrong(source, wanted, act):
        return Refusal(why)
    with transaction.atomic(using=sql.database().alias):
        rule = IgnoreRule.objects.create(
            tenant_id=source.tenant_id, source=source, name=wanted.name, family=wanted.family,
            operation_class=wanted.operation_class, starts_with=wanted.starts_with,
            amount_minor_max=wanted.amount_minor_max, currency=wanted.currency,
            reason=act.reason, until=wanted.until, created_by=act.actor,
            created_at=timezone.now(),
        )  # fmt: skip
        _record(rule, act, "add ignore rule")
    return Ruled(rule)


def _wrong(source: Source, wanted: Wanted, act: Act) -> str:
    today = timezone.now().date()
    faults = {
        "There is no such source.": source.tenant_id != act.tenant.pk,
        "A rule needs a name and a reason.": not (act.reason.strip() and wanted.name.strip()),
        "The rule names no kind of difference.": wanted.family
        not in Discrepancy.Family.values,
        f"{source.slug} does not compare {wanted.operation_class!r}.": (
            wanted.operation_class not in source.statement_kinds
        ),
        "A rule ends between today and a year from now.": (
            not today <= wanted.until <= today + timedelta(days=RULE_DAYS_MAX)
        ),
        "A rule with an amount names its currency.": (
            wanted.amount_minor_max is not None and not wanted.currency
        ),
    }
    return next((why for why, holds in faults.items() if holds), "")


def end_rule(rule: IgnoreRule, act: Act) -> Ruled | Refusal:
    """End a rule before its day; what it ignored is open again."""
    with transaction.atomic(using=sql.database().alias):
        fresh = IgnoreRule.objects.filter(pk=rule.pk, tenant=act.tenant, ended_at=None)
        if not fresh.update(ended_at=timezone.now(), ended_by=act.actor):
            return Refusal("It has ended before.")
        ignored = Discrepancy.objects.filter(rule=rule, status=Discrepancy.Status.IGNORED)
        opened = ignored.update(
            status=Discrepancy.Status.OPEN, version=F("version") + 1, **NOT_CLOSED
        )
        _record(rule, act, "end ignore rule", opened=opened)
    return Ruled(IgnoreRule.objects.get(pk=rule.pk))


def _record(rule: IgnoreRule, act: Act, name: str, **facts: object) -> None:
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about="ignore rule",
        about_id=str(rule.public_id), reason=act.reason, name=rule.name, **facts,
    )  # fmt: skip
